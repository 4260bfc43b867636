"""Reads a cluster's API and its groups into a `World`. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from kubernetes import client

from clients.kube import Kube
from clients.objects import Place
from clients.rest import PATIENT_S
from clients.waiting import is_ready
from cluster import preflight
from cluster.autoscaler import Autoscaler
from components.scheduling import gangs as gang_api
from controllers.autoscaler.amounts import capacity_of
from controllers.autoscaler.gang import NO_GANGS, Gangs, gangs_of
from controllers.autoscaler.groups import Group, GroupError, Groups
from controllers.autoscaler.keys import KEEP
from controllers.autoscaler.memory import Memory
from controllers.autoscaler.pod_requests import PodRequest
from controllers.autoscaler.pods import Doc, is_on_a_host, is_waiting, name_of, node_of, resident, shape_of, waiting
from controllers.autoscaler.supply import choices_of, gpus_of, supplies
from controllers.autoscaler.world import Node, Resident, World
from controllers.planner import Shape, Taint
from controllers.planner.resources import GPU, Resources
from operations.drain import mark_of
from operations.repair.look import CheckInputs, see

STARTING = (
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/network-unavailable",
    "node.cloudprovider.kubernetes.io/uninitialized",
    preflight.KEY,
)
"""Taints of a starting node, which are removed automatically ("Taints and Tolerations"; docs/how-to/preflight.md)."""
CORDON = "node.kubernetes.io/unschedulable"
T = TypeVar("T")
_LONGEST = 200
_RUNNING = "status.phase!=Succeeded,status.phase!=Failed"
"""Pods that have not ended."""
_KEEPS_AWAY = ("NoSchedule", "NoExecute")


class Fixed:
    """Groups of a cluster in which no pool is grown automatically."""

    def read(self) -> Mapping[str, Group]:
        return {}

    def grow(self, pool: str, size: int) -> None:
        raise GroupError(f"pool {pool} is not grown automatically")

    def remove(self, pool: str, ids: Sequence[str]) -> None:
        raise GroupError(f"pool {pool} is not shrunk automatically")


def read_world(around: CheckInputs, groups: Groups, settings: Autoscaler, memory: Memory) -> World:
    """Read the cluster now. If the groups' cloud doesn't answer, this is noted in `missing`.

    Errors: raises kubernetes' ApiException and urllib3's HTTPError if the API doesn't answer.
    """
    observed = see(around)
    kube = Kube(around.api(), timeout_s=PATIENT_S)
    missing, by_pool = _groups(groups)
    no_disruption = _no_disruption(kube.list("PodDisruptionBudget"))
    unreadable: list[str] = []
    daemons = _readable(kube.list("DaemonSet"), lambda each: shape_of(_template(each), PodRequest()), unreadable)
    pools = {member.name: member.pool for member in observed.fleet.members}
    on: dict[str, list[Resident]] = {}
    pending: list[Doc] = []
    # Page by page: whole pods of a large cluster would need gigabytes.
    for pod in kube.list("Pod", fields=_RUNNING):
        if is_on_a_host(pod):
            on.setdefault(node_of(pod), []).append(_resident(pod, no_disruption))
        if is_waiting(pod):
            pending.append(pod)
    now_s = observed.fleet.now
    nodes = tuple(
        _node(node, pools[name], tuple(on.get(name, ())), around, settings, now_s)
        for name, node in observed.nodes.items()
        if name in pools
    )
    supplies_, notices = supplies(around.cluster, settings, nodes, by_pool, daemons, memory.rooms)
    choices = choices_of(supplies_, settings)
    gangs = _gangs(around)
    waits = _readable(pending, lambda pod: waiting(pod, choices, gangs), unreadable)
    return World(now_s, supplies_, by_pool, nodes, tuple(waits), observed.fleet, missing, (*notices, *unreadable))


def _readable(things: Iterable[Doc], read: Callable[[Doc], T], notices: list[str]) -> list[T]:
    """Return the objects that can be read; add a notice for each other one. Anybody may create unreadable objects; they must not block the rest."""
    results = []
    for each in things:
        try:
            results.append(read(each))
        except Exception as error:  # noqa: BLE001
            notices.append(f"{name_of(each)} is ignored, because it can't be read: {str(error)[:_LONGEST]!r}")
    return results


def _resident(pod: Doc, no_disruption: Callable[[Doc], bool]) -> Resident:
    """Read a pod on a host. An unreadable one keeps its host, because what would be lost is unknown."""
    try:
        return resident(pod, no_disruption(pod))
    except Exception as error:  # noqa: BLE001
        return Resident(name_of(pod), Shape(Resources()), keeps=f"can't be read: {str(error)[:_LONGEST]!r}")


def _groups(groups: Groups) -> tuple[tuple[str, ...], Mapping[str, Group]]:
    try:
        return (), groups.read()
    except GroupError as error:
        return (f"the groups of machines ({error})",), {}


def _gangs(around: CheckInputs) -> Gangs:
    spec = around.cluster.spec
    if not spec.scheduling.gangs:
        return NO_GANGS
    place = Place(gang_api.api(spec.kubernetes.version), "podgroups")
    return gangs_of(Kube(around.api(), more={"PodGroup": place}, timeout_s=PATIENT_S).list("PodGroup"))


def _template(daemon_set: Mapping[str, Any]) -> dict[str, Any]:
    """Return a pod as the DaemonSet creates it, without the tolerations for unhealthy nodes that its controller adds."""
    template = daemon_set["spec"]["template"]
    metadata = {**template.get("metadata", {}), "namespace": daemon_set["metadata"]["namespace"]}
    return {"metadata": metadata, "spec": template["spec"]}


def _node(
    node: client.V1Node,
    pool: str,
    residents: tuple[Resident, ...],
    around: CheckInputs,
    settings: Autoscaler,
    now_s: float,
) -> Node:
    meta, spec = node.metadata, node.spec
    condition = next((each for each in node.status.conditions or () if each.type == "Ready"), None)
    changed = condition.last_transition_time if condition else meta.creation_timestamp
    since_s = (changed or meta.creation_timestamp).timestamp()
    allocatable = Resources.of(capacity_of(node.status.allocatable or {}))
    taints = [(each.key, each.value or "", each.effect) for each in spec.taints or ()]
    starts = any(key in STARTING for key, _, _ in taints) or (
        pool in around.cluster.spec.pools
        and gpus_of(around.cluster, around.cluster.spec.pools[pool]) > allocatable[GPU]
    )
    young = now_s - meta.creation_timestamp.timestamp() <= settings.boot_timeout / 1000
    mark = mark_of(node)
    return Node(
        meta.name,
        pool,
        allocatable,
        meta.labels or {},
        tuple(
            Taint(key, value, effect)
            for key, value, effect in taints
            if effect in _KEEPS_AWAY and key != CORDON and not (young and key in STARTING)
        ),
        residents,
        ready=is_ready(node),
        starting=starts and young,
        cordoned=bool(spec.unschedulable),
        mark=mark.by if mark else "",
        keep=(meta.annotations or {}).get(KEEP) == "true",
        since_s=since_s,
    )


def _no_disruption(budgets: Iterable[Mapping[str, Any]]) -> Callable[[Mapping[str, Any]], bool]:
    """Return a function that says whether a disruption budget currently forbids evicting a pod."""
    tight: dict[str, list[Mapping[str, Any]]] = {}
    for each in budgets:
        if not (each.get("status") or {}).get("disruptionsAllowed"):
            tight.setdefault(each["metadata"]["namespace"], []).append(each["spec"].get("selector") or {})

    def holds(pod: Mapping[str, Any]) -> bool:
        labels = pod["metadata"].get("labels") or {}
        return any(_fits(selector, labels) for selector in tight.get(pod["metadata"]["namespace"], ()))

    return holds


def _fits(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a selector matches (kubernetes.io, "Labels and Selectors"). An empty selector of a policy/v1 budget matches every pod."""
    if not (selector.get("matchLabels") or {}).items() <= labels.items():
        return False
    return all(_holds(each, labels) for each in selector.get("matchExpressions") or ())


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values") or ()
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
    return value is None


def names(api: client.ApiClient) -> Iterator[tuple[str, str]]:
    """Yield (provider id, name) of every Node that has a provider id, to map a cloud's machines to nodes."""
    for node in Kube(api, timeout_s=PATIENT_S).list("Node"):
        if id := node["spec"].get("providerID"):
            yield id, node["metadata"]["name"]
