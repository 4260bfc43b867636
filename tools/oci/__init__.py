"""Builds container images without a builder: layers with reproducible bytes."""
