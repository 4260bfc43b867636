"""Which disks of a host Ceph may have, for Menagerie's role storage_host. Standard library alone, for the Python that a host has."""
