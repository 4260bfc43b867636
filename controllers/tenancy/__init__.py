"""Reconciles namespaces, rights, quotas and hosts with a directory of people and teams."""
