"""A drawing of a cluster, made from its spec, as SVG and as an HTML page. Pure."""
