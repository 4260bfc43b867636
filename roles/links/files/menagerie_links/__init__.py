"""A host's links, for Menagerie's role links. Standard library only, for the host's Python."""
