"""The autoscaler: what it looks at, how it decides, and what carries it out. docs/autoscaler.md says how.

`decide.decide` is one pass, a function of what was seen, what is remembered and the time. `run` puts passes into practice.
"""
