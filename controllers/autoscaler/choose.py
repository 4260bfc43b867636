"""Chooses the implementation of a cluster's groups of machines."""

from __future__ import annotations

from collections.abc import Callable

from kubernetes import client

from cluster.spec import Cluster
from controllers.autoscaler import clouds
from controllers.autoscaler.groups import Groups
from controllers.autoscaler.lab import LabGroups
from controllers.autoscaler.look import names
from operations.lab import RegionWorkers


def groups_of(cluster: Cluster, api: Callable[[], client.ApiClient]) -> Groups:
    """Return the groups of the cluster's lab or cloud. api: makes a client; it maps a cloud's machines to nodes by provider id."""
    if cluster.is_lab:
        return LabGroups(cluster, RegionWorkers(cluster))
    return clouds.groups_of(cluster, lambda: dict(names(api())))
