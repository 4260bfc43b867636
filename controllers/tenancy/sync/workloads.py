"""Scales the workloads of a namespace to zero and back. No I/O.

An annotation on each workload records its earlier state. The same patch writes both, so neither exists without the other. Pods
without a controller, DaemonSets and workloads of other controllers are left unchanged.
"""

from __future__ import annotations

import re
from typing import Any

from controllers.tenancy.sync.objects import Object

BEFORE = "menagerie.dev/before"
"""Annotation: the earlier number of replicas, or "running" for a workload that was not suspended."""
SCALED = ("Deployment", "StatefulSet", "ReplicaSet")
SUSPENDED = ("CronJob", "Job")


def stopped(workload: Object) -> dict[str, Any] | None:
    """Return the merge patch that stops it; None if it is stopped, its controller stops it, or somebody started it again."""
    spec, metadata = workload.get("spec") or {}, workload["metadata"]
    if BEFORE in (metadata.get("annotations") or {}) or _controlled(workload):
        return None
    if workload["kind"] in SCALED:
        replicas = spec.get("replicas", 1)
        return _patch(str(replicas), replicas=0) if replicas else None
    if spec.get("suspend") or _finished(workload):
        return None
    return _patch("running", suspend=True)


def started(workload: Object) -> dict[str, Any] | None:
    """Return the merge patch that restores its earlier state; None if we did not stop it."""
    before = (workload["metadata"].get("annotations") or {}).get(BEFORE)
    if before is None:
        return None
    if workload["kind"] in SUSPENDED:
        return _patch(None, suspend=False)
    return _patch(None, replicas=int(before)) if re.fullmatch("[0-9]{1,9}", before) else _patch(None)


def _patch(before: str | None, **spec: object) -> dict[str, Any]:
    return {"metadata": {"annotations": {BEFORE: before}}, **({"spec": spec} if spec else {})}


def _controlled(workload: Object) -> bool:
    return any(owner.get("controller") for owner in workload["metadata"].get("ownerReferences") or ())


def _finished(workload: Object) -> bool:
    conditions = (workload.get("status") or {}).get("conditions") or ()
    return any(each["type"] in ("Complete", "Failed") and each["status"] == "True" for each in conditions)
