"""Mirrors that a bundle fills: a web server with a registry, buckets, folders, registries."""
