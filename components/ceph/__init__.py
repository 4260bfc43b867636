"""Rook's objects for the Ceph storage of a site: storage classes, alerts, and the configuration of storage hosts."""
