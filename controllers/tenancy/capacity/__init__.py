"""Allocates hosts to teams with labels, taints and admission policies: look, plan, refuse or apply."""
