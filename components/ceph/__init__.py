"""Ceph storage of a site: Rook's resources, storage classes, alerts, and the configuration of storage hosts."""
