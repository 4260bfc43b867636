"""Programs for hosts of etcd members. Standard library only."""
