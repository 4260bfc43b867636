"""Programs of etcd hosts, placed below /usr/local/lib/menagerie: Python's standard library and nothing else."""
