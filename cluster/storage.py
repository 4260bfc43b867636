"""What follows from a spec's `storage`: which storage classes exist, on which disks, and who may create volumes."""

from __future__ import annotations

from cluster import catalogue
from cluster.disks import takes
from cluster.pools import Pool
from cluster.spec import Cloud, ClusterSpec


def has_block(spec: ClusterSpec) -> bool:
    """Return whether the cluster has the driver of disks and the class `block`."""
    return spec.storage.block and controllers_pool(spec) is not None


def has_file(spec: ClusterSpec) -> bool:
    """Return whether the cluster has the driver of shared file systems and the class `file`."""
    return spec.storage.file and controllers_pool(spec) is not None


def controllers_pool(spec: ClusterSpec) -> str | None:
    """Return the pool that runs the drivers' controllers. Only its machines' identity may create volumes.

    None if there are no drivers: without workers in the region, in a lab, or if the spec turns both classes off.
    """
    pools = usable_pools(spec)
    if not pools or spec.control_plane.cloud is Cloud.LAB or not (spec.storage.block or spec.storage.file):
        return None
    if spec.storage.controllers:
        return spec.storage.controllers
    return min(pools, key=lambda name: _unfit(spec, pools[name]))


def block_disk(spec: ClusterSpec) -> str:
    """Return the kind of disk of the class `block`, as in the catalogue. A lab has none.

    Default: the first that all machines in the region support, otherwise the first that any supports.
    """
    cloud, machines = spec.control_plane.cloud, [pool.machine for pool in usable_pools(spec).values() if pool.machine]
    if spec.storage.block_disk:
        return spec.storage.block_disk
    candidates = catalogue.of(cloud).choices.volumes
    by_all, by_any = (
        [kind for kind in candidates if which(takes(cloud, each, kind) for each in machines)] for which in (all, any)
    )
    return (*by_all, *by_any, candidates[0])[0]


def usable_pools(spec: ClusterSpec) -> dict[str, Pool]:
    """Return the pools in the region that can have machines."""
    return {name: pool for name, pool in spec.region_pools.items() if pool.max}


def has_gpus(spec: ClusterSpec, pool: Pool) -> bool:
    """Return whether a pool's machines have GPUs according to the catalogue."""
    if spec.control_plane.cloud not in catalogue.CLOUDS:
        return False
    machine = catalogue.of(spec.control_plane.cloud).machine_types.get(pool.machine or "")
    return bool(machine and machine.type and machine.type.gpus)


def _unfit(spec: ClusterSpec, pool: Pool) -> tuple[bool, ...]:
    # Prefer pools without GPUs, which cost most. Spot and empty pools only mean that volumes wait for a controller.
    return has_gpus(spec, pool), pool.spot, pool.min == 0
