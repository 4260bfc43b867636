"""Proofs that a cluster works. `PROOFS` lists them; `verify` runs them in order."""
