"""Clients for a running cluster: its API server, its etcds and their agents, SSH, buckets, leases, metrics."""
