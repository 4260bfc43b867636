"""Secrets that tell API servers about the bucket for their audit logs, and how long its objects are locked."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi

from cluster.quantities import whole_days
from cluster.spec import Cluster
from components.control_plane import audit_log
from stacks.backups import Buckets
from stacks.cloud_store import API_SERVERS


def kept_days(cluster: Cluster) -> int:
    """Return how long an object can be neither changed nor deleted, in whole days."""
    return whole_days(cluster.spec.control_plane.audit_log.keep)


def secrets(
    cluster: Cluster, buckets: Buckets, own: pulumi.Input[Mapping[str, object]]
) -> dict[str, dict[str, pulumi.Input[str]]]:
    """Return reader -> name -> value. own: as in `components.control_plane.audit_log.settings`."""
    settings = pulumi.Output.all(buckets=buckets, own=own).apply(
        lambda values: audit_log.settings(values["buckets"][audit_log.USE], cluster.name, values["own"])
    )
    return {API_SERVERS: {audit_log.SECRET: pulumi.Output.secret(settings)}}
