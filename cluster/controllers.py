"""Where pods with powerful tokens run: on one pool, so that root on any other host has none of them."""

from __future__ import annotations

from cluster import hardware
from cluster.spec import Cluster
from cluster.storage import controllers_pool, has_gpus

HOSTS = 2
"""A controller has two pods, which never share a host."""


def home(cluster: Cluster) -> str | None:
    """The pool that runs Menagerie's own controllers; None where no pool can have a host.

    Of pools that are as good that of the controllers of volumes: then one pool holds all such tokens.
    """
    chosen = cluster.spec.tenancy.controllers if cluster.spec.tenancy else None
    pools = [name for name in cluster.spec.pools if _most(cluster, name)]
    return chosen or min(pools, key=lambda name: _unfit(cluster, name), default=None)


def _unfit(cluster: Cluster, name: str) -> tuple[bool, ...]:
    spec, pool = cluster.spec, cluster.spec.pools[name]
    found = hardware.of_pool(spec.control_plane.cloud, pool)
    gpus = has_gpus(spec, pool) or bool(found and found.gpus)
    least = len(cluster.hosts.get(name, ())) if pool.site else pool.min
    few = _most(cluster, name) < HOSTS
    return few, gpus, pool.spot, least < HOSTS, name != controllers_pool(spec)


def _most(cluster: Cluster, name: str) -> int:
    pool = cluster.spec.pools[name]
    return len(cluster.hosts.get(name, ())) if pool.site else pool.max
