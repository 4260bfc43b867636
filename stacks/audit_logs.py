"""What API servers read of the store about the bucket for their audit logs, and for how long that is locked."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi

from cluster.spec import Cluster
from components.control_plane import audit_log
from stacks.backups import Buckets
from stacks.payloads import API_SERVERS

_DAY_MS = 86_400_000


def kept_days(cluster: Cluster) -> int:
    """How long an object can neither be changed nor deleted, in whole days."""
    return -(-cluster.spec.control_plane.audit_log.keep // _DAY_MS)


def secrets(
    cluster: Cluster, buckets: Buckets, own: pulumi.Input[Mapping[str, object]]
) -> dict[str, dict[str, pulumi.Input[str]]]:
    """Reader -> name -> value. own: as of `components.control_plane.audit_log.settings`."""
    told = pulumi.Output.all(buckets=buckets, own=own).apply(
        lambda known: audit_log.settings(known["buckets"][audit_log.USE], cluster.name, known["own"])
    )
    return {API_SERVERS: {audit_log.SECRET: pulumi.Output.secret(told)}}
