"""`verify`: proofs that a running cluster works."""
