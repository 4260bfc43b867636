"""What a spec's `storage` comes to: which classes there are, on which disks, and who may make volumes."""

from __future__ import annotations

from cluster import catalogue
from cluster.disks import takes
from cluster.pools import Pool
from cluster.spec import Cloud, ClusterSpec

_DISKS = {
    Cloud.AWS: ("gp3",),
    Cloud.AZURE: ("premium_ssd", "standard_ssd"),
    Cloud.GCP: ("pd-balanced", "hyperdisk-balanced"),
}
"""Kinds in the order in which the default is looked for among them."""


def has_block(spec: ClusterSpec) -> bool:
    """Whether the driver of disks and the class `block` are built."""
    return spec.storage.block and controllers_pool(spec) is not None


def has_file(spec: ClusterSpec) -> bool:
    """Whether the driver of shared file systems and the class `file` are built."""
    return spec.storage.file and controllers_pool(spec) is not None


def controllers_pool(spec: ClusterSpec) -> str | None:
    """The pool whose machines run the drivers' controllers, and whose identity alone may make volumes.

    None where the region has no workers, in a lab, or where no class is asked for: then there are no drivers.
    """
    pools = region_pools(spec)
    if not pools or spec.control_plane.cloud is Cloud.LAB or not (spec.storage.block or spec.storage.file):
        return None
    if spec.storage.controllers:
        return spec.storage.controllers
    return min(pools, key=lambda name: _unfit(spec, pools[name]))


def block_disk(spec: ClusterSpec) -> str:
    """The kind of disk of the class `block`, as the catalogue calls it; KeyError in a lab.

    Default: the first that all machines in the region take, else the first that any takes.
    """
    cloud, machines = spec.control_plane.cloud, [pool.machine for pool in region_pools(spec).values() if pool.machine]
    if spec.storage.block_disk:
        return spec.storage.block_disk
    by_all, by_any = (
        [kind for kind in _DISKS[cloud] if which(takes(cloud, each, kind) for each in machines)] for which in (all, any)
    )
    return (*by_all, *by_any, _DISKS[cloud][0])[0]


def region_pools(spec: ClusterSpec) -> dict[str, Pool]:
    """Pools in the region that may have machines."""
    return {name: pool for name, pool in spec.pools.items() if pool.site is None and pool.max}


def has_gpus(spec: ClusterSpec, pool: Pool) -> bool:
    """Whether the catalogue knows GPUs in a pool's machines."""
    if spec.control_plane.cloud not in catalogue.CLOUDS:
        return False
    found = catalogue.of(spec.control_plane.cloud).machine_types.get(pool.machine or "")
    return bool(found and found.type and found.type.gpus)


def _unfit(spec: ClusterSpec, pool: Pool) -> tuple[bool, ...]:
    # A volume waits for as long as there is no controller: GPUs cost most, the other two are a question of time.
    return has_gpus(spec, pool), pool.spot, pool.min == 0
