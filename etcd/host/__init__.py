"""Programs that run on hosts of etcd members. Standard library only."""
