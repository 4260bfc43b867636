"""The parts of a cluster as text: units, flags, manifests, firewall rules, user data. Pure: contacts no host."""
