"""A trace of pods through the loop with simulated time: what it would have cost, how long pods would have waited."""
