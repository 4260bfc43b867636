"""Where pods with powerful tokens run: on a single pool, so that root on any other host can't get at them."""

from __future__ import annotations

from cluster import hardware
from cluster.spec import Cluster
from cluster.storage import controllers_pool, has_gpus

HOSTS = 2
"""A controller has two pods, which never run on the same host."""


def home(cluster: Cluster) -> str | None:
    """Return the pool that runs Menagerie's controllers; None if no pool can have a host.

    Among equally suitable pools, prefers the one with the controllers of volumes, so that one pool has all such tokens.
    """
    chosen = cluster.spec.tenancy.controllers if cluster.spec.tenancy else None
    pools = [name for name in cluster.spec.pools if _most(cluster, name)]
    return chosen or min(pools, key=lambda name: _unfit(cluster, name), default=None)


def _unfit(cluster: Cluster, name: str) -> tuple[bool, ...]:
    spec, pool = cluster.spec, cluster.spec.pools[name]
    machine = hardware.of_pool(spec.control_plane.cloud, pool)
    gpus = has_gpus(spec, pool) or bool(machine and machine.gpus)
    least = len(cluster.hosts.get(name, ())) if pool.site else pool.min
    few = _most(cluster, name) < HOSTS
    return few, gpus, pool.spot, least < HOSTS, name != controllers_pool(spec)


def _most(cluster: Cluster, name: str) -> int:
    pool = cluster.spec.pools[name]
    return len(cluster.hosts.get(name, ())) if pool.site else pool.max
