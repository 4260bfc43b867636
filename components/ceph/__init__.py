"""Ceph storage of a site: Rook's resources, storage classes, alerts, and what storage hosts are told."""
