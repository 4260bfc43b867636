"""A cluster on AWS. Never run against a real account."""
