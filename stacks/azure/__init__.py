"""A cluster on Azure. Never run against a real subscription."""
