"""People and teams from a directory: their namespaces, rights, quotas and hosts, kept in step."""
