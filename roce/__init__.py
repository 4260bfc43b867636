"""RDMA over Ethernet: what hosts and switches are told, whether they agree, and tests of the whole fabric."""
