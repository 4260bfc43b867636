"""Draws a cluster from its spec, as SVG and as a page. Pure."""
