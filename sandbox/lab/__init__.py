"""Data centre on one machine, with hosts that boot systemd, networks, disks and a load balancer."""
