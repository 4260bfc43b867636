"""Rotation of keys and certificates of a running cluster."""
