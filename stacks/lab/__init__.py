"""A cluster in the lab: the same programs as in a cloud."""
