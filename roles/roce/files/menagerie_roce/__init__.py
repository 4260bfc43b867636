"""A host's RDMA ports, for Menagerie's role roce. Standard library alone, for the Python that a host has."""
