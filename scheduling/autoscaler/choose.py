"""Which groups of machines a cluster has."""

from __future__ import annotations

from collections.abc import Callable

from kubernetes import client

from cluster.autoscaler import Autoscaler
from cluster.spec import Cluster
from scheduling.autoscaler import clouds
from scheduling.autoscaler.groups import Groups
from scheduling.autoscaler.look import names


class NoAutoscalerError(Exception):
    """The spec says nothing of an autoscaler."""


def settings_of(cluster: Cluster) -> Autoscaler:
    """NoAutoscalerError, with the way out."""
    if cluster.spec.autoscaler is None:
        raise NoAutoscalerError(
            f"the spec of {cluster.name} has no autoscaler; `autoscaler: {{}}` is all it needs: docs/autoscaler.md"
        )
    return cluster.spec.autoscaler


def groups_of(cluster: Cluster, api: Callable[[], client.ApiClient]) -> Groups:
    """api: makes a client; a cloud's machines are known to be nodes by their provider ids."""
    if cluster.is_lab:
        from operations.lab import RegionWorkers
        from scheduling.autoscaler.lab import LabGroups

        return LabGroups(cluster, RegionWorkers(cluster))
    return clouds.groups_of(cluster, lambda: dict(names(api())))
