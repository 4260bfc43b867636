"""Empty disks of machines at a lab's site, so that they can be the spec's storage hosts. Pure."""

from __future__ import annotations

from cluster.spec import Cluster


def disks_of(cluster: Cluster, pool: str, host: str) -> dict[str, int]:
    """Return name in /dev/disk/by-id -> bytes, for one machine: as many of each kind as `ceph.disks` says, in its minimum size."""
    site = cluster.spec.sites.get(cluster.spec.pools[pool].site or "")
    if site is None or site.ceph is None or pool not in site.ceph.hosts:
        return {}
    return {
        kind.by_id.replace("*", f"{host}-{number}").replace("?", str(number % 10)): kind.min_size
        for kind in site.ceph.disks.values()
        for number in range(1, kind.count + 1)
    }
