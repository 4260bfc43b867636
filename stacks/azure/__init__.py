"""A cluster on Azure. Nothing here has met a real subscription."""
