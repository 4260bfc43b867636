"""Verbs on a cluster: build it, look at it, prove that it works."""
