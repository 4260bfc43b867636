"""Adds hosts to pools in the region for pending pods, and removes idle hosts.

`decide.decide` is one pass: a function of the observed world, the memory and the time. `run` carries passes out.
"""
