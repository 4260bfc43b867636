"""Addresses, links, flannel, neighbour tables, and tunnels between the region and sites. Pure."""
