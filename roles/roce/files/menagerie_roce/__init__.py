"""A host's RDMA ports, for Menagerie's role roce. Standard library only, for the host's Python."""
