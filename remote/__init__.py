"""Programs run on hosts of sites, over the operator's own ssh."""
