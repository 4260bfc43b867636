"""`make conformance`: Kubernetes' own suite against a cluster."""
