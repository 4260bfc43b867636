"""A host's GPUs, for Menagerie's role gpu. Standard library only, for the host's Python."""
