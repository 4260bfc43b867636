"""Kubernetes' own test suite against a cluster: `make conformance`."""
