"""As whom workers in the region read the store. Pure: no resource is made here."""

from __future__ import annotations

from cluster.spec import Cluster
from cluster.storage import controllers_pool
from stacks.payloads import WORKERS

CONTROLLERS = "controllers"
"""The pool whose machines may make volumes has an identity of its own, and reads what every worker reads."""


def of_pool(cluster: Cluster, name: str) -> str:
    """The identity of a pool in the region."""
    return CONTROLLERS if name == controllers_pool(cluster.spec) else WORKERS


def of_workers(cluster: Cluster) -> tuple[str, ...]:
    """The identities of all workers in the region."""
    pools = (name for name, pool in cluster.spec.pools.items() if pool.site is None)
    return tuple(sorted({of_pool(cluster, name) for name in pools}, reverse=True))
