"""The model: the spec and its checks, pinned versions, the facts that a stack hands over. Imports no other folder."""
