"""A cluster on Azure: network, security groups, hosts, load balancers, buckets. Never run against a real subscription."""
