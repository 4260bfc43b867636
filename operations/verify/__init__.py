"""`verify`: proves that a running cluster works."""
