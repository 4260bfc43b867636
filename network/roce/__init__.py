"""RDMA over Ethernet: settings of hosts and switches, and the evaluation of fabric tests."""
