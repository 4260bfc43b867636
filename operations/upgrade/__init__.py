"""Upgrades a running cluster to another release of Kubernetes, host by host."""
