"""Who connects to whom on which port: the one table behind every firewall."""
