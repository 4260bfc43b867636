"""Empty disks that machines of a lab's site have, so that they are the storage hosts of the spec. Pure."""

from __future__ import annotations

from cluster.spec import Cluster


def disks_of(cluster: Cluster, pool: str, host: str) -> dict[str, int]:
    """Name in /dev/disk/by-id -> bytes, of one machine: as many of each kind as `ceph.disks` says, of its least size."""
    site = cluster.spec.sites.get(cluster.spec.pools[pool].site or "")
    if site is None or site.ceph is None or pool not in site.ceph.hosts:
        return {}
    return {
        kind.by_id.replace("*", f"{host}-{number}").replace("?", str(number % 10)): kind.min_size
        for kind in site.ceph.disks.values()
        for number in range(1, kind.count + 1)
    }
