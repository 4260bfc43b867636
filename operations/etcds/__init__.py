"""Verbs on the etcds of a running cluster: state, backup, restore, replace, roll, recover space."""
