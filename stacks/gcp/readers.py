"""The identities with which workers in the region read the store. Pure: creates no resources."""

from __future__ import annotations

from cluster.spec import Cluster
from cluster.storage import controllers_pool
from stacks.cloud_store import WORKERS

CONTROLLERS = "controllers"
"""The identity of the pool whose machines may create volumes; it reads what every worker reads."""


def of_pool(cluster: Cluster, name: str) -> str:
    """Return the identity of a pool in the region."""
    return CONTROLLERS if name == controllers_pool(cluster.spec) else WORKERS


def of_workers(cluster: Cluster) -> tuple[str, ...]:
    """Return the identities of all workers in the region."""
    return tuple(sorted({of_pool(cluster, name) for name in cluster.spec.region_pools}, reverse=True))
