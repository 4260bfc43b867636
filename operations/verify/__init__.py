"""Proofs that a running cluster works, by traffic and by faults."""
