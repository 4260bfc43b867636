"""Configuration of storage hosts: the variables of role storage_host. No I/O."""

from __future__ import annotations

from typing import Any

from cluster.spec import Cluster
from components.ceph.names import storage

_LVM = str.maketrans({"*": ".*", "?": ".", ".": "[.]", "+": "[+]"})
"""Translates a name pattern into a regular expression for LVM. In strings of lvm.conf a backslash starts an escape sequence,
so brackets quote instead."""


def is_storage(cluster: Cluster, pool: str) -> bool:
    """Return whether the pool's machines are storage hosts."""
    configured = storage(cluster.spec)
    return configured is not None and pool in configured[1].hosts


def networks(cluster: Cluster) -> dict[str, list[str]]:
    """Return the ranges of Ceph's networks `public` and `cluster`. `public` is never empty."""
    configured = storage(cluster.spec)
    if configured is None:
        return {}
    site, ceph = configured
    racks = sorted({host.rack for pool in ceph.hosts for host in cluster.hosts.get(pool, ())})
    public = ceph.networks.public or [cluster.spec.sites[site].racks[rack] for rack in racks]
    return {"public": [str(net) for net in public], "cluster": [str(net) for net in ceph.networks.cluster]}


def settings(cluster: Cluster) -> dict[str, Any]:
    """Return ``/etc/menagerie/storage.json`` for the program `menagerie-disks`; it is the same on all storage hosts."""
    configured = storage(cluster.spec)
    if configured is None:
        return {}
    keys = ("by_id", "count", "rotational")
    disks = {
        name: {**{key: getattr(kind, key) for key in keys}, "min_size": kind.min_size, "max_size": kind.max_size}
        for name, kind in configured[1].disks.items()
    }
    return {"disks": disks, "networks": networks(cluster)}


def lvm_rejects(cluster: Cluster) -> list[str]:
    """Return lvm.conf(5) global_filter entries that hide Ceph's disks, and RBD devices, whose LVM belongs to pods."""
    configured = storage(cluster.spec)
    kinds = configured[1].disks.values() if configured else ()
    names = dict.fromkeys(kind.by_id.translate(_LVM) for kind in kinds)
    return ["r|^/dev/rbd|", *(f"r|^/dev/disk/by-id/{name}$|" for name in names)]


def of_pool(cluster: Cluster, pool: str) -> dict[str, Any]:
    """Return the role's variables for the pool's hosts; none if they are not storage hosts, which skips the role."""
    if not is_storage(cluster, pool):
        return {}
    return {"storage_host_settings": settings(cluster), "storage_host_lvm_filter": lvm_rejects(cluster)}
