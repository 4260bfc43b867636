"""A host's GPUs, for Menagerie's role gpu. Standard library alone, for the Python that a host has."""
