"""A cluster on Google Cloud: network, firewall rules, hosts, load balancers, buckets. Never run against a real project."""
