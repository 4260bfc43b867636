"""Runs programs on hosts at sites over the operator's SSH."""
