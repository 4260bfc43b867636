"""Upgrade of a running cluster to another release of Kubernetes, one host at a time."""
