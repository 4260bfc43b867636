"""The autoscaler: reads the cluster, decides which hosts to add and remove, and does it.

`decide.decide` is one pass: a function of the observed world, the memory and the time. `run` carries passes out.
"""
