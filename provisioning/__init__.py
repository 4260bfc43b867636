"""Machines from bare iron: installer files rendered from hosts.yaml, and BMCs spoken to by Redfish."""
