"""Which disks Ceph may use, for Menagerie's role storage_host. Standard library only, for the host's Python."""
