"""RDMA over Ethernet: settings for hosts and switches, and the evaluation of fabric tests."""
