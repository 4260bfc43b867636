"""Answers cluster-autoscaler's question which node group to grow, by our planner and prices.

docs/how-to/expander.md says how, with the flags of cluster-autoscaler.
"""
