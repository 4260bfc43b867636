"""Namespaces kept in step with a directory: look, plan, refuse or apply."""
