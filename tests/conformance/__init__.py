"""`make conformance`: Kubernetes' own test suite against a cluster."""
