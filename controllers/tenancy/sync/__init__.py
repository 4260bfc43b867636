"""Reconciles namespaces with a directory: look, plan, refuse or apply."""
