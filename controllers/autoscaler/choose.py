"""Which groups of machines a cluster has."""

from __future__ import annotations

from collections.abc import Callable

from kubernetes import client

from cluster.autoscaler import Autoscaler
from cluster.errors import RefusedError
from cluster.spec import Cluster
from controllers.autoscaler import clouds
from controllers.autoscaler.groups import Groups
from controllers.autoscaler.look import names


def settings_of(cluster: Cluster) -> Autoscaler:
    """RefusedError, with the way out."""
    if cluster.spec.autoscaler is None:
        raise RefusedError(
            f"the spec of {cluster.name} has no autoscaler; `autoscaler: {{}}` is all it needs: docs/how-to/autoscaler.md",
            code="no-autoscaler",
        )
    return cluster.spec.autoscaler


def groups_of(cluster: Cluster, api: Callable[[], client.ApiClient]) -> Groups:
    """api: makes a client; a cloud's machines are known to be nodes by their provider ids."""
    if cluster.is_lab:
        from controllers.autoscaler.lab import LabGroups
        from operations.lab import RegionWorkers

        return LabGroups(cluster, RegionWorkers(cluster))
    return clouds.groups_of(cluster, lambda: dict(names(api())))
