"""A cluster in the lab."""
