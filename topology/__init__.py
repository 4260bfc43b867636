"""A cluster as a drawing, made of its spec alone: pure."""
