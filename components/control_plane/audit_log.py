"""Where API servers' audit logs are stored, the settings for their hosts, and the unit of `host/audit_log.py`, which ships them.

docs/explanation/audit-logs.md says what is lost with a host, who may write what, and how to read the logs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from cluster.files import Consumer
from cluster.outputs import BucketOutput
from components.control_plane import paths
from components.control_plane.host import audit_log
from components.control_plane.service_unit import PYTHON_PATH, Unit, python

_UNIT = "audit-log.service"
USE = "audit-logs"
"""Key of the bucket in `ClusterOutputs.buckets`."""
SECRET = "audit-log.json"
"""Name in the cluster's secret store: where the bucket is, and the identity with which hosts write to it."""
PATH = f"{paths.CONFIG}/{SECRET}"
SHIPPED_EVERY_S = audit_log.EVERY_S
STALE_S = 2 * audit_log.QUIET_S
"""Age of a host's newest object at which the host is unhealthy. A host with nothing to log writes two empty objects in that
time."""


def unit() -> Unit:
    """Return the unit of the program that ships them."""
    return Unit(
        name=_UNIT,
        description="Ships the API server's audit log to the cluster's bucket",
        documentation="https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/",
        words=python("audit_log"),
        after=("network-online.target",),
        credentials=((SECRET, PATH),),
        settings=(PYTHON_PATH, "StateDirectory=audit-log", "StateDirectoryMode=0700", "TimeoutStopSec=60s"),
        # Runs as root, which owns the log. It needs none of the cluster's keys.
        hidden=(paths.PKI,),
    )


def consumer() -> Consumer:
    """Return what it follows."""
    return Consumer(_UNIT, (PATH,))


def settings(bucket: BucketOutput, cluster: str, own: Mapping[str, object]) -> str:
    """Return the value of the secret `SECRET`. own: an identity or a key to use, if the host's own identity is not enough."""
    values = {**bucket.model_dump(exclude_none=True, exclude={"locked_days"}), "cluster": cluster, **own}
    return json.dumps(values, sort_keys=True)


def prefix(cluster: str) -> str:
    """Return the prefix of all objects of a cluster. The next part of an object's name is the host."""
    return f"{cluster}/"
