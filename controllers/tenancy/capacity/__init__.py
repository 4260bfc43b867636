"""Which hosts are which team's: labels, taints and the admission that goes with them. Look, plan, refuse or apply."""
