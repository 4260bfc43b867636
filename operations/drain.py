"""Nodes taken out of service and given back: cordoned under a mark, and emptied through the eviction API.

Whoever takes a node out leaves a `Mark` on it, which says who, why and since when, and whether the node was cordoned by it:
a run that was killed finds its nodes again, another verb keeps away, and nobody uncordons what somebody else cordoned.
Nothing here knows what a node is taken out for.

Sources: kubernetes.io, "API-initiated Eviction", "Safely Drain a Node" and "Disruptions".
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import Enum
from http import HTTPStatus
from typing import Any, TypeVar

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from clients.access import API_TIMEOUT_S
from clients.conflicts import until_settled
from clients.waiting import Report
from cluster import shared
from cluster.errors import RefusedError

MARK = "menagerie.dev/out-of-service"
"""Annotation of a Node: a `Mark` as JSON, with its version. It is never changed, only made and taken away."""
_VERSION = 1
AGAIN_S = 5.0
"""Until an eviction that was refused is asked for again; kubectl drain waits as long."""
_LOOK_S = 1.0
_MIRROR = "kubernetes.io/config.mirror"
_SHOWN = 5

_T = TypeVar("_T")
Patch = dict[str, Any]
Pause = Callable[[float], None]
"""Sleeps for seconds, or raises to end what is under way."""


class OutOfServiceError(RefusedError):
    """A node is out of service for another reason, or its pods may not be evicted."""

    code = "pods-would-be-lost"


class DrainTimedOutError(Exception):
    """Pods are left; the text names each, and what keeps it."""


@dataclass(frozen=True)
class Mark:
    """Who took a node out of service. by: a verb. cordoned: whether the node was not cordoned before.

    since: RFC 3339, by the clock of the machine that ran the verb.
    """

    by: str
    why: str
    since: str = ""
    cordoned: bool = True


@dataclass(frozen=True)
class Rules:
    """What may become of a node's pods.

    timeout_s: how long their end is waited for. unmanaged: whether pods that nothing makes anew are evicted too.
    empty_dir: whether pods whose files are on the node (emptyDir) are evicted. wait_for_jobs: pods of Jobs are not evicted
    but waited for, within the same time. kubelet_answers: whether the end of a pod is ever told; without, asking for it is all.
    """

    timeout_s: float = 900.0
    unmanaged: bool = False
    empty_dir: bool = True
    wait_for_jobs: bool = False
    kubelet_answers: bool = True


class Fate(Enum):
    """What becomes of a pod when its node is drained."""

    STAYS = "stays"
    """A DaemonSet's, which would make it anew at once; a mirror of a static pod; one that has ended, or that ends on a node
    whose kubelet says nothing any more."""
    LEAVES = "leaves"
    ENDS = "ends"
    """It is waited for: it ends already, or is a Job's that may finish."""
    REFUSED = "refused"


def fate(pod: client.V1Pod, rules: Rules) -> tuple[Fate, str]:
    """What becomes of a pod, and why where it may not leave."""
    meta, spec = pod.metadata, pod.spec
    owner = next((each.kind for each in meta.owner_references or () if each.controller), "")
    if owner == "DaemonSet" or _MIRROR in (meta.annotations or {}) or pod.status.phase in ("Succeeded", "Failed"):
        return Fate.STAYS, ""
    if meta.deletion_timestamp:
        if not rules.kubelet_answers:
            return Fate.STAYS, ""
        grace = meta.deletion_grace_period_seconds or 0
        return Fate.ENDS, f"is ending, and may take {grace} s to; its kubelet has not said that it has"
    if not owner and not rules.unmanaged:
        return Fate.REFUSED, "nothing would make it anew elsewhere"
    if not rules.empty_dir and any(volume.empty_dir for volume in spec.volumes or ()):
        return Fate.REFUSED, "it keeps files on the node (emptyDir), which end with it"
    if owner == "Job" and rules.wait_for_jobs:
        return Fate.ENDS, "is a Job's, and may finish"
    return Fate.LEAVES, ""


def pods_on(api: client.ApiClient, node: str) -> list[client.V1Pod]:
    """All pods that are bound to the node."""
    core = client.CoreV1Api(api)
    selector = f"spec.nodeName={node}"
    return list(core.list_pod_for_all_namespaces(field_selector=selector, _request_timeout=API_TIMEOUT_S).items)


def refused(pods: Iterable[client.V1Pod], rules: Rules) -> list[str]:
    """``namespace/name: why`` of the pods that the rules don't let go."""
    decided = ((pod, *fate(pod, rules)) for pod in pods)
    return [f"{name_of(pod)}: {why}" for pod, what, why in decided if what is Fate.REFUSED]


def name_of(pod: client.V1Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"


def mark_of(node: client.V1Node) -> Mark | None:
    """Who took the node out of service; None where nobody with a mark did. One that a newer Menagerie wrote is somebody else's."""
    text = (node.metadata.annotations or {}).get(MARK)
    if text is None:
        return None
    try:
        found: dict[str, Any] = json.loads(text)
        shared.check(f"the annotation {MARK}", found.get(shared.KEY), _VERSION)
        return shared.known(Mark, found)
    except shared.NewerDataError as error:
        return Mark(by="a newer Menagerie", why=str(error))
    except (ValueError, TypeError, AttributeError):
        return Mark(by="somebody", why=f"the annotation {MARK} can't be read: {text[:100]}")


def cordon(api: client.ApiClient, name: str, mark: Mark) -> Mark:
    """Let no further pod onto the node, under the mark. The mark that is on it then: an earlier one of the same verb stays.

    Raises OutOfServiceError where another verb has taken the node out.
    """

    def change(node: client.V1Node) -> tuple[Patch | None, Mark]:
        own = mark_of(node)
        if own and own.by != mark.by:
            raise OutOfServiceError(
                f"{name} is out of service by {own.by} since {own.since or 'an unknown time'}: {own.why}. Let that end first, "
                f"or take its annotation {MARK} away"
            )
        if own and node.spec.unschedulable:
            return None, own
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        made = own or Mark(mark.by, mark.why, now, not node.spec.unschedulable)
        annotations = {MARK: json.dumps({shared.KEY: _VERSION, **asdict(made)}, sort_keys=True)}
        return {"metadata": {"annotations": annotations}, "spec": {"unschedulable": True}}, made

    return _changed(api, name, change)


def uncordon(api: client.ApiClient, name: str, by: str) -> bool:
    """Give back a node that `by` took out: the mark goes, and the cordon where it came with the mark. Whether it did."""

    def change(node: client.V1Node) -> tuple[Patch | None, bool]:
        own = mark_of(node)
        if own is None or own.by != by:
            return None, False
        spec = {"spec": {"unschedulable": None}} if own.cordoned else {}
        return {"metadata": {"annotations": {MARK: None}}, **spec}, True

    return _changed(api, name, change)


def _changed(api: client.ApiClient, name: str, change: Callable[[client.V1Node], tuple[Patch | None, _T]]) -> _T:
    """Patch the node as it was when `change` looked at it; look again where somebody else was quicker."""
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

    Evictions respect PodDisruptionBudgets; what one refuses is asked for again until the time is up. `report` gets what is
    waited for.

    Raises OutOfServiceError for pods that the rules don't let go, before any is evicted, and DrainTimedOutError.
    """
    deadline = time.monotonic() + rules.timeout_s
    told = ""
    while True:
        found = pods_on(api, name)
        if stay := refused(found, rules):
            raise OutOfServiceError(f"{name} has pods that would be lost: {_some(stay)}")
        waits, refusals = {}, 0
        for pod in found:
            what, why = fate(pod, rules)
            if what is Fate.LEAVES:
                why = evict(api, pod)
                refusals += bool(why)
            if what is not Fate.STAYS:
                waits[name_of(pod)] = why
        if not waits:
            return
        blocked = [f"{pod} {why}" for pod, why in waits.items() if why]
        if (now := f"{len(waits)} pods are left on {name}" + (f": {_some(blocked)}" if blocked else "")) != told:
            report(told := now)
        if time.monotonic() >= deadline:
            raise DrainTimedOutError(
                f"{name} was not empty after {rules.timeout_s:.0f} s: {_some(blocked or list(waits))}"
            )
        pause(min(AGAIN_S if refusals else _LOOK_S, max(deadline - time.monotonic(), 0.1)))


def empty(api: client.ApiClient, name: str, by: str, rules: Rules, report: Report, pause: Pause = time.sleep) -> None:
    """`drain`, for a run that gives the node back where that can't be done."""
    try:
        drain(api, name, rules, report, pause)
    except (DrainTimedOutError, OutOfServiceError):
        uncordon(api, name, by)
        raise


def way_out(name: str) -> str:
    """What to do with a node that stays cordoned, for the end of a message."""
    return (
        f"run the same command again, which goes on from here; or give the node up: kubectl uncordon {name}, and "
        f"kubectl annotate node {name} {MARK}-"
    )


def evict(api: client.ApiClient, pod: client.V1Pod) -> str:
    """Ask for an eviction; why it was refused, "" where it was not."""
    meta = pod.metadata
    # A StatefulSet makes a pod of the same name elsewhere, which is not to be evicted.
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
    """What the API server says, with the budget that it names."""
    try:
        status = json.loads(error.body)
    except (ValueError, TypeError):
        return f"{error.status} {error.reason}"
    causes = [cause.get("message", "") for cause in (status.get("details") or {}).get("causes") or ()]
    return str(next((text for text in causes if text), status.get("message") or error.reason))


def _some(lines: list[str]) -> str:
    return "; ".join(lines[:_SHOWN]) + (f"; and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else "")
