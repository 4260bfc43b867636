"""Tells cluster-autoscaler which node group to grow, using our planner and prices.

docs/how-to/expander.md describes the setup, with cluster-autoscaler's flags.
"""
