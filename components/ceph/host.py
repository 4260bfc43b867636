"""What a storage host is told: the variables of role storage_host, and the labels of its node. No I/O."""

from __future__ import annotations

from typing import Any

from cluster.spec import Cluster
from components.ceph.names import storage

_LVM = str.maketrans({"*": ".*", "?": ".", ".": "[.]", "+": "[+]"})
"""A pattern for names as LVM's regular expression. In its file's strings a backslash would be an escape of the string's."""


def is_storage(cluster: Cluster, pool: str) -> bool:
    """Whether the pool's machines are storage hosts."""
    found = storage(cluster.spec)
    return found is not None and pool in found[1].hosts


def networks(cluster: Cluster) -> dict[str, list[str]]:
    """`public` and `cluster` as ranges; the first is never empty."""
    found = storage(cluster.spec)
    if found is None:
        return {}
    site, ceph = found
    racks = sorted({host.rack for pool in ceph.hosts for host in cluster.hosts.get(pool, ())})
    public = ceph.networks.public or [cluster.spec.sites[site].racks[rack] for rack in racks]
    return {"public": [str(each) for each in public], "cluster": [str(each) for each in ceph.networks.cluster]}


def settings(cluster: Cluster) -> dict[str, Any]:
    """``/etc/menagerie/storage.json``, which the program `menagerie-disks` reads; all storage hosts have the same."""
    found = storage(cluster.spec)
    if found is None:
        return {}
    keys = ("by_id", "count", "rotational")
    disks = {
        name: {**{key: getattr(kind, key) for key in keys}, "min_size": kind.min_size, "max_size": kind.max_size}
        for name, kind in found[1].disks.items()
    }
    return {"disks": disks, "networks": networks(cluster)}


def lvm_rejects(cluster: Cluster) -> list[str]:
    """lvm.conf(5), global_filter: disks that are Ceph's, and disks that Ceph makes, whose LVM is a pod's own."""
    found = storage(cluster.spec)
    kinds = found[1].disks.values() if found else ()
    names = dict.fromkeys(kind.by_id.translate(_LVM) for kind in kinds)
    return ["r|^/dev/rbd|", *(f"r|^/dev/disk/by-id/{name}$|" for name in names)]


def of_pool(cluster: Cluster, pool: str) -> dict[str, Any]:
    """The role's variables for the pool's hosts; none where they are no storage hosts, and the role is left out."""
    if not is_storage(cluster, pool):
        return {}
    return {"storage_host_settings": settings(cluster), "storage_host_lvm_filter": lvm_rejects(cluster)}
