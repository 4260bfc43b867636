"""A host's links, for Menagerie's role links. Standard library alone, for the Python that a host has."""
