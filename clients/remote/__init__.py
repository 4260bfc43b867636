"""Runs programs on hosts of sites over the operator's SSH."""
