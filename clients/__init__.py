"""How a running cluster is reached: its API server, its etcds and their agents, SSH, buckets, leases, metrics."""
