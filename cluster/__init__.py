"""The model: the spec and its checks, pinned versions, and the outputs of stacks. Imports no other folder."""
