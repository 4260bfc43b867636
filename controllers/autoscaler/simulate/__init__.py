"""Runs a trace of pods through the loop in simulated time: what it would have cost, and how long pods would have waited."""
