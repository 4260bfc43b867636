"""Converts pods of the API to `Waiting` and `Resident`. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from controllers.autoscaler.amounts import requests_of
from controllers.autoscaler.gang import NO_GANGS, Gangs, NoGroupError, gang_of, group_of
from controllers.autoscaler.keys import HOSTNAME_LABEL, KEEP, SAFE_TO_EVICT
from controllers.autoscaler.pod_requests import Choices, PodRequest, pod_request
from controllers.autoscaler.world import Resident, Waiting
from controllers.planner import Operator, Requirement, Shape, Toleration
from controllers.planner.resources import Resources

Doc = Mapping[str, Any]
_MIRROR = "kubernetes.io/config.mirror"
_ENDED = ("Succeeded", "Failed")


def is_waiting(pod: Doc) -> bool:
    """Whether the scheduler found no host for the pod. A pod that preempts others has a host in prospect, and doesn't count."""
    status = pod.get("status") or {}
    if pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp") or status.get("nominatedNodeName"):
        return False
    if status.get("phase") in _ENDED or _owner(pod) == "DaemonSet":
        return False
    return any(each["reason"] == "Unschedulable" for each in _refusals(pod))


def is_on_a_host(pod: Doc) -> bool:
    """Whether the pod takes room on a node, or is about to."""
    return bool(node_of(pod)) and (pod.get("status") or {}).get("phase") not in _ENDED


def node_of(pod: Doc) -> str:
    return pod["spec"].get("nodeName") or (pod.get("status") or {}).get("nominatedNodeName") or ""


def _refusals(pod: Doc) -> Iterator[Doc]:
    for each in (pod.get("status") or {}).get("conditions") or ():
        if each["type"] == "PodScheduled" and each["status"] == "False" and each.get("reason"):
            yield each


def name_of(pod: Doc) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def seconds(stamp: str) -> int:
    """Convert RFC 3339 to Unix time."""
    return int(datetime.fromisoformat(stamp).timestamp())


def waiting(pod: Doc, choices: Choices, gangs: Gangs = NO_GANGS) -> Waiting:
    """Convert a pod for which `is_waiting` holds. Invalid annotations are among its complaints."""
    wants = pod_request(pod["metadata"].get("annotations") or {}, choices)
    gang = None
    try:
        gang = gang_of(pod, gangs)
    except NoGroupError as error:
        wants.complaints.append(str(error))
        wants.refused = wants.refused or str(error)
    return Waiting(
        name_of(pod),
        pod["metadata"]["uid"],
        shape_of(pod, wants),
        seconds(pod["metadata"]["creationTimestamp"]),
        pod["spec"].get("priority") or 0,
        gang,
        wants.refused,
        tuple(wants.complaints),
        next((each.get("message", "") for each in _refusals(pod)), ""),
    )


def resident(pod: Doc, no_disruption: bool = False) -> Resident:
    """Convert a pod for which `is_on_a_host` holds. no_disruption: whether a budget forbids its eviction."""
    gang = group_of(pod)
    owner = _owner(pod)
    daemon = owner == "DaemonSet" or _MIRROR in (pod["metadata"].get("annotations") or {})
    ending = bool(pod["metadata"].get("deletionTimestamp"))
    keeps = "" if daemon else _keeps(pod, owner, gang is not None, no_disruption)
    return Resident(name_of(pod), shape_of(pod, PodRequest()), daemon, keeps, ending, gang)


def _keeps(pod: Doc, owner: str, in_gang: bool, no_disruption: bool) -> str:
    """Return why a pod keeps its host: the strongest reason, "" for none."""
    notes = pod["metadata"].get("annotations") or {}
    for key, value in ((KEEP, "true"), (SAFE_TO_EVICT, "false")):
        if notes.get(key) == value:
            return f"has the annotation {key}={value}"
    if in_gang:
        return "belongs to a gang, which would restart as a whole"
    if not owner:
        return "has no controller that would recreate it"
    if owner == "Job":
        return "belongs to a Job, whose work would be lost"
    volumes = [each["name"] for each in pod["spec"].get("volumes") or () if "emptyDir" in each or "hostPath" in each]
    if volumes:
        return f"keeps files on the host ({volumes[0]})"
    return "has a disruption budget that allows no eviction now" if no_disruption else ""


def _owner(pod: Doc) -> str:
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((each["kind"] for each in owners if each.get("controller")), "")


def shape_of(pod: Doc, wants: PodRequest) -> Shape:
    """Return the pod's shape. Pods with equal specs get the same object, because the planner compares identical objects fastest."""
    spec = pod["spec"]
    fields = {key: spec.get(key) for key in ("nodeSelector", "tolerations", "affinity", "overhead", "resources")}
    fields["containers"] = [each.get("resources") for each in spec.get("containers") or ()]
    fields["init"] = [[each.get("resources"), each.get("restartPolicy")] for each in spec.get("initContainers") or ()]
    fields["own"] = _apart(pod)
    return _shape(json.dumps(fields, sort_keys=True), wants.preferences, wants.spot, wants.ceiling)


@lru_cache(maxsize=20_000)
def _shape(fields: str, preferences: Any, spot: Any, ceiling: int | None) -> Shape:
    spec = json.loads(fields)
    amounts = requests_of({
        **spec,
        "containers": [{"resources": each} for each in spec["containers"]],
        "initContainers": [{"resources": own, "restartPolicy": policy} for own, policy in spec["init"]],
    })  # fmt: skip
    return Shape(
        Resources.of(amounts),
        _needs(spec),
        tuple(_toleration(each) for each in spec["tolerations"] or ()),
        preferences=preferences,
        spot=spot,
        ceiling=ceiling,
        apart=spec["own"],
    )


def _needs(spec: Doc) -> tuple[tuple[Requirement, ...], ...]:
    """Return the alternatives for the host's labels: one term and the nodeSelector must hold ("Assigning Pods to Nodes")."""
    selector = tuple(
        Requirement(key, Operator.IN, (value,)) for key, value in sorted((spec["nodeSelector"] or {}).items())
    )
    required = ((spec["affinity"] or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    terms = (required or {}).get("nodeSelectorTerms") or ()
    if not terms:
        return (selector,) if selector else ()
    return tuple((*selector, *_term(term)) for term in terms)


def _term(term: Doc) -> Iterator[Requirement]:
    for each in (*(term.get("matchExpressions") or ()), *(term.get("matchFields") or ())):
        yield Requirement(each["key"], Operator(each["operator"]), tuple(each.get("values") or ()))


def _toleration(document: Doc) -> Toleration:
    value = None if document.get("operator") == "Exists" else document.get("value", "")
    return Toleration(document.get("key") or None, value, document.get("effect") or None)


def _apart(pod: Doc) -> str | None:
    """Return the group whose pods never share a host: a required anti-affinity by host that matches the pod's own labels."""
    rules = ((pod["spec"].get("affinity") or {}).get("podAntiAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or ()
    own = pod["metadata"].get("labels") or {}
    for rule in rules:
        labels = (rule.get("labelSelector") or {}).get("matchLabels") or {}
        if rule.get("topologyKey") == HOSTNAME_LABEL and labels and labels.items() <= own.items():
            selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
            return f"{pod['metadata']['namespace']}/{selector}"
    return None
