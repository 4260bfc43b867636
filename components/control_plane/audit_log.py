"""Where API servers' audit logs are kept, and what their hosts are told of it. `host/audit_log.py` ships them.

docs/explanation/audit-logs.md says what is lost with a host, who may write what, and how the logs are read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from cluster.outputs import BucketOutput
from components.control_plane import paths
from components.control_plane.host import audit_log

USE = "audit-logs"
"""Of the bucket, in `ClusterOutputs.buckets`."""
SECRET = "audit-log.json"
"""In the cluster's secret store: where the bucket is and as whom hosts put objects into it."""
PATH = f"{paths.CONFIG}/{SECRET}"
SHIPPED_EVERY_S = audit_log.EVERY_S
STALE_S = 2 * audit_log.QUIET_S
"""The age of a host's newest object at which it is unwell: a silent one puts an empty object twice in that time."""


def settings(bucket: BucketOutput, cluster: str, own: Mapping[str, object]) -> str:
    """What the store holds under `SECRET`. own: an identity to ask as, or a key, where the host's own is not enough."""
    known = {**bucket.model_dump(exclude_none=True, exclude={"locked_days"}), "cluster": cluster, **own}
    return json.dumps(known, sort_keys=True)


def prefix(cluster: str) -> str:
    """Of all objects of a cluster; the next part of a name is the host."""
    return f"{cluster}/"
