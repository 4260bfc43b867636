"""Bundles: everything that clusters download, in one signed file."""
