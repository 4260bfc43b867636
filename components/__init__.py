"""What a cluster consists of, as text: units, flags, manifests, firewall rules, user data. Pure: reaches no host."""
