"""Builds container images without a builder, as layers with reproducible bytes."""
