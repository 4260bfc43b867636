"""All objects of a cluster's Ceph that Rook reconciles, in the order in which they are applied. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

import yaml

from cluster.spec import Cluster
from components.ceph import alerts, classes, pools
from components.ceph import cluster as ceph_cluster
from components.ceph.facts import Device
from components.ceph.names import of
from components.ceph.toolbox import toolbox
from components.control_plane.objects import Object


def objects(cluster: Cluster, devices: Mapping[str, tuple[Device, ...]]) -> tuple[Object, ...]:
    """Return the objects. devices: as `facts.judge` returns them without problems. Raises ValueError without Ceph."""
    ceph = of(cluster)
    return (
        ceph_cluster.namespace(),
        ceph_cluster.ceph_cluster(cluster, devices),
        ceph_cluster.manager_pool(ceph),
        *pools.block_pools(ceph),
        *pools.filesystem(cluster),
        *pools.object_store(cluster),
        *classes.class_policy(ceph),
        *classes.volume_policy(),
        *classes.storage_classes(ceph),
        alerts.config_map(ceph),
        toolbox(cluster),
    )


def text(things: tuple[Object, ...]) -> str:
    """Return YAML for `kubectl apply --server-side -f -`."""
    return yaml.safe_dump_all(things, sort_keys=False, explicit_start=True, width=120)
