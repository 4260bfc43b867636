"""A cluster on Google Cloud. Nothing here has met a real project."""
