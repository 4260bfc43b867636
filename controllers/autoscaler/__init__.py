"""The autoscaler: reads the cluster, decides which hosts come and go, and carries it out.

`decide.decide` is one pass, a function of what was seen, what is remembered and the time. `run` puts passes into practice.
"""
