"""Catalogues of metrics that exporters of a cluster serve, scrape jobs, and their sizes computed from a spec."""
