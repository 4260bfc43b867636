"""The control plane of a cluster on AWS.

Not whole yet: `stacks.program` does not offer it. Nothing here has met a real account.
"""
