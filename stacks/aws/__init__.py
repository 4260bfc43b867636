"""A cluster on AWS: network, security groups, hosts, load balancers, buckets. Never run against a real account."""
