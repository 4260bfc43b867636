"""Managed instance groups of Google Cloud."""
