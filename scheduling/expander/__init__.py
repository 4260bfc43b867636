"""cluster-autoscaler asks which of its node groups to grow; this answers by the planner and our prices.

docs/expander.md says how, with the flags of cluster-autoscaler.
"""
