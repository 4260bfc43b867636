"""A cluster on AWS; docs/aws.md. Nothing here has met a real account."""
