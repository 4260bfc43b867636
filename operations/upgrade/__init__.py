"""A running cluster to another release of Kubernetes and back, a host at a time, within the version skew policy."""
