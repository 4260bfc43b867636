"""Takes nodes out of service and returns them: cordon with a mark, and drain through the eviction API.

Every removal leaves a `DrainMark` on the node: which verb, why, since when, and whether this cordoned the node. With it, a
killed run finds its nodes again, other verbs keep away, and nobody uncordons a node that someone else cordoned.
This module does not depend on the reason of a removal.
Sources: kubernetes.io, "API-initiated Eviction", "Safely Drain a Node" and "Disruptions".
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import Enum
from http import HTTPStatus
from typing import Any, NamedTuple, TypeVar

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from clients.access import API_TIMEOUT_S
from clients.conflicts import until_settled
from clients.paging import models
from clients.waiting import Report, wait_until
from cluster import shared
from cluster.errors import FailedError, RefusedError, TimedOutError

MARK = "menagerie.dev/out-of-service"
"""Annotation of a Node: a `DrainMark` as JSON, with its version. It is only created and removed, never changed."""
_VERSION = 1
AGAIN_S = 5.0
"""Delay before a refused eviction is retried, as in kubectl drain."""
_LOOK_S = 1.0
_MIRROR = "kubernetes.io/config.mirror"
_SHOWN = 5

_T = TypeVar("_T")
Patch = dict[str, Any]
Pause = Callable[[float], None]
"""Sleeps for seconds, or raises to end the operation."""


class OutOfServiceError(RefusedError):
    """A node is out of service for another reason, or its pods must not be evicted."""

    code = "pods-would-be-lost"


class DrainTimedOutError(FailedError):
    """Pods are left; the text names them and why they stay."""

    code = "timed-out"


@dataclass(frozen=True)
class DrainMark:
    """Who took a node out of service. by: a verb. cordoned: whether this cordoned the node (it was not cordoned before).

    since: RFC 3339, by the clock of the machine that ran the verb.
    """

    by: str
    why: str
    since: str = ""
    cordoned: bool = True


@dataclass(frozen=True)
class Rules:
    """What may be done with a node's pods.

    timeout_s: how long to wait for their end. unmanaged: whether to evict pods without a controller too. empty_dir: whether
    to evict pods with files on the node (emptyDir). wait_for_jobs: wait for pods of Jobs, within the same time, instead of
    evicting them. kubelet_answers: whether the kubelet can report that a pod has ended; if not, requesting its end is enough.
    """

    timeout_s: float = 900.0
    unmanaged: bool = False
    empty_dir: bool = True
    wait_for_jobs: bool = False
    kubelet_answers: bool = True


class PodFate(Enum):
    """What happens to a pod when its node is drained."""

    STAYS = "stays"
    """It belongs to a DaemonSet, which would replace it at once; it mirrors a static pod; it has ended; or it is ending on a
    node whose kubelet no longer reports."""
    LEAVES = "leaves"
    ENDS = "ends"
    """Wait for it: it is ending already, or belongs to a Job that may finish."""
    REFUSED = "refused"


def fate(pod: client.V1Pod, rules: Rules) -> tuple[PodFate, str]:
    """Return what happens to a pod, and the reason if it can't be evicted."""
    meta, spec = pod.metadata, pod.spec
    owner = next((reference.kind for reference in meta.owner_references or () if reference.controller), "")
    if owner == "DaemonSet" or _MIRROR in (meta.annotations or {}) or pod.status.phase in ("Succeeded", "Failed"):
        return PodFate.STAYS, ""
    if meta.deletion_timestamp:
        if not rules.kubelet_answers:
            return PodFate.STAYS, ""
        grace = meta.deletion_grace_period_seconds or 0
        return PodFate.ENDS, f"is ending, within {grace} s; its kubelet has not reported the end yet"
    if not owner and not rules.unmanaged:
        return PodFate.REFUSED, "it has no controller that would recreate it elsewhere"
    if not rules.empty_dir and any(volume.empty_dir for volume in spec.volumes or ()):
        return PodFate.REFUSED, "it has files on the node (emptyDir), which would be deleted with it"
    if owner == "Job" and rules.wait_for_jobs:
        return PodFate.ENDS, "belongs to a Job and may finish"
    return PodFate.LEAVES, ""


def pods_on(api: client.ApiClient, node: str) -> list[client.V1Pod]:
    """Return all pods that are bound to the node."""
    core = client.CoreV1Api(api)
    return list(models(core.list_pod_for_all_namespaces, field_selector=f"spec.nodeName={node}"))


def refused(pods: Iterable[client.V1Pod], rules: Rules) -> list[str]:
    """Return ``namespace/name: why`` for the pods that the rules don't let go."""
    decided = ((pod, *fate(pod, rules)) for pod in pods)
    return [f"{name_of(pod)}: {why}" for pod, pod_fate, why in decided if pod_fate is PodFate.REFUSED]


def name_of(pod: client.V1Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"


def mark_of(node: client.V1Node) -> DrainMark | None:
    """Return the node's mark, None if it has none. A mark that can't be read, or is newer, counts as someone else's."""
    text = (node.metadata.annotations or {}).get(MARK)
    if text is None:
        return None
    try:
        data: dict[str, Any] = json.loads(text)
        shared.check(f"the annotation {MARK}", data.get(shared.KEY), _VERSION)
        return shared.from_known_fields(DrainMark, data)
    except shared.NewerDataError as error:
        return DrainMark(by="a newer Menagerie", why=str(error))
    except (ValueError, TypeError, AttributeError):
        return DrainMark(by="somebody", why=f"the annotation {MARK} can't be read: {text[:100]}")


def cordon(api: client.ApiClient, name: str, mark: DrainMark) -> DrainMark:
    """Cordon the node and mark it. Return the resulting mark: an earlier one of the same verb stays.

    Raises OutOfServiceError if another verb has taken the node out.
    """

    def change(node: client.V1Node) -> tuple[Patch | None, DrainMark]:
        current = mark_of(node)
        if current and current.by != mark.by:
            raise OutOfServiceError(
                f"{name} has been out of service since {current.since or 'an unknown time'} ({current.by}: {current.why}). Wait "
                f"until that is finished, or remove the mark: kubectl annotate node {name} {MARK}-"
            )
        if current and node.spec.unschedulable:
            return None, current
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        new_mark = current or DrainMark(mark.by, mark.why, now, not node.spec.unschedulable)
        annotations = {MARK: json.dumps({shared.KEY: _VERSION, **asdict(new_mark)}, sort_keys=True)}
        return {"metadata": {"annotations": annotations}, "spec": {"unschedulable": True}}, new_mark

    return _changed(api, name, change)


def uncordon(api: client.ApiClient, name: str, by: str) -> bool:
    """Return a node that `by` took out: remove the mark, and the cordon if it came with it. Return whether there was one."""

    def change(node: client.V1Node) -> tuple[Patch | None, bool]:
        current = mark_of(node)
        if current is None or current.by != by:
            return None, False
        spec = {"spec": {"unschedulable": None}} if current.cordoned else {}
        return {"metadata": {"annotations": {MARK: None}}, **spec}, True

    return _changed(api, name, change)


def _changed(api: client.ApiClient, name: str, change: Callable[[client.V1Node], tuple[Patch | None, _T]]) -> _T:
    """Read the node, apply the patch that `change` returns, and retry on a conflict."""
    core = client.CoreV1Api(api)

    def attempt() -> _T:
        node = core.read_node(name, _request_timeout=API_TIMEOUT_S)
        patch, result = change(node)
        if patch is not None:
            patch["metadata"]["resourceVersion"] = node.metadata.resource_version
            core.patch_node(name, patch, _request_timeout=API_TIMEOUT_S)
        return result

    return until_settled(attempt)


def drain(
    api: client.ApiClient, name: str, rules: Rules, report: Report = lambda _: None, pause: Pause = time.sleep
) -> None:
    """Evict the node's pods and wait for their end. The node must be cordoned.

    Evictions respect PodDisruptionBudgets; refused ones are retried until the time-out. `report` gets what this waits for.

    Raises OutOfServiceError, before any eviction, for pods that the rules don't let go, and DrainTimedOutError.
    """
    left = _Left()

    def missing() -> str:
        nonlocal left
        left = _evict_all(api, name, rules)
        blocked = f": {_some(left.blocked)}" if left.blocked else ""
        return f"{len(left.pods)} pods are left on {name}{blocked}" if left.pods else ""

    def rest(longest_s: float) -> None:
        pause(min(longest_s, AGAIN_S if left.refused else _LOOK_S))

    try:
        wait_until(missing, rules.timeout_s, report, AGAIN_S, rest)
    except TimedOutError:
        raise DrainTimedOutError(
            f"{name} was not empty after {rules.timeout_s:.0f} s: {_some(left.blocked or left.pods)}"
        ) from None


class _Left(NamedTuple):
    """What is left on a node. pods: names. blocked: lines about those that may not leave yet. refused: number of refused evictions."""

    pods: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    refused: int = 0


def _evict_all(api: client.ApiClient, name: str, rules: Rules) -> _Left:
    """Request the end of all pods that leave, and return what is left. Raises OutOfServiceError before any eviction."""
    pods = pods_on(api, name)
    if kept := refused(pods, rules):
        raise OutOfServiceError(f"{name} has pods that would be lost: {_some(kept)}")
    waits: dict[str, str] = {}
    refusals = 0
    for pod in pods:
        pod_fate, why = fate(pod, rules)
        if pod_fate is PodFate.LEAVES:
            why = evict(api, pod)
            refusals += bool(why)
        if pod_fate is not PodFate.STAYS:
            waits[name_of(pod)] = why
    return _Left(tuple(waits), tuple(f"{pod} {why}" for pod, why in waits.items() if why), refusals)


def empty(api: client.ApiClient, name: str, by: str, rules: Rules, report: Report, pause: Pause = time.sleep) -> None:
    """Call `drain`, and uncordon the node if that fails."""
    try:
        drain(api, name, rules, report, pause)
    except (DrainTimedOutError, OutOfServiceError):
        uncordon(api, name, by)
        raise


def way_out(name: str) -> str:
    """Return what to do with a node that stays cordoned, for the end of a message."""
    return (
        f"run the same command again to resume; or give up: kubectl uncordon {name}, then "
        f"kubectl annotate node {name} {MARK}-"
    )


def evict(api: client.ApiClient, pod: client.V1Pod) -> str:
    """Request an eviction. Return why it was refused, "" if it was not."""
    meta = pod.metadata
    # A StatefulSet creates a pod of the same name elsewhere, which must not be evicted.
    options = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid=meta.uid))
    metadata = client.V1ObjectMeta(name=meta.name, namespace=meta.namespace)
    body = client.V1Eviction(metadata=metadata, delete_options=options)
    try:
        client.CoreV1Api(api).create_namespaced_pod_eviction(
            meta.name, meta.namespace, body, _request_timeout=API_TIMEOUT_S
        )
    except ApiException as error:
        if error.status in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
            return ""
        # 500: more than one budget; 403: its namespace is being deleted, which ends the pod too.
        if error.status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.FORBIDDEN):
            return f"can't be evicted: {_reason(error)}"
        raise
    return ""


def _reason(error: ApiException) -> str:
    """Return the API server's reason, with the budget that it names."""
    try:
        status = json.loads(error.body)
    except (ValueError, TypeError):
        return f"{error.status} {error.reason}"
    causes = [cause.get("message", "") for cause in (status.get("details") or {}).get("causes") or ()]
    return str(next((text for text in causes if text), status.get("message") or error.reason))


def _some(lines: Sequence[str]) -> str:
    return "; ".join(lines[:_SHOWN]) + (f"; and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else "")
