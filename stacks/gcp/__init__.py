"""A cluster on Google Cloud. Never run against a real project."""
