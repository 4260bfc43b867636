"""Any etcd of a cluster, main or events: members, flags, units, backups."""
