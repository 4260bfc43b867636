"""A look at a cluster: its API and its groups, as a `World`. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from kubernetes import client

from clients.waiting import is_ready
from cluster import preflight
from cluster.autoscaler import Autoscaler
from controllers.autoscaler import reading
from controllers.autoscaler.amounts import there
from controllers.autoscaler.asking import Asked
from controllers.autoscaler.gang import NO_GANGS, Gangs, gangs_of
from controllers.autoscaler.groups import Group, GroupError, Groups
from controllers.autoscaler.keys import KEEP
from controllers.autoscaler.memory import Memory
from controllers.autoscaler.pods import Doc, is_on_a_host, is_waiting, name_of, node_of, resident, shape_of, waiting
from controllers.autoscaler.seen import Node, Resident, World
from controllers.autoscaler.supply import choices_of, gpus_of, supplies
from controllers.planner import Shape, Taint
from controllers.planner.resources import GPU, Resources
from operations.drain import mark_of
from operations.repair.look import Around, see

STARTING = (
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/network-unavailable",
    "node.cloudprovider.kubernetes.io/uninitialized",
    preflight.KEY,
)
"""Taints of a node that starts: they go by themselves ("Taints and Tolerations"; docs/how-to/preflight.md)."""
CORDON = "node.kubernetes.io/unschedulable"
T = TypeVar("T")
_LONGEST = 200
_KEEPS_AWAY = ("NoSchedule", "NoExecute")


class Fixed:
    """Groups of a cluster in which nothing grows by itself."""

    def read(self) -> Mapping[str, Group]:
        return {}

    def grow(self, pool: str, size: int) -> None:
        raise GroupError(f"pool {pool} does not grow by itself")

    def remove(self, pool: str, ids: Sequence[str]) -> None:
        raise GroupError(f"pool {pool} does not shrink by itself")


def look(around: Around, groups: Groups, settings: Autoscaler, memory: Memory) -> World:
    """The cluster now. What the groups' cloud doesn't tell is `missing`; what the API doesn't tell is raised: ApiException of
    kubernetes, HTTPError of urllib3."""
    seen = see(around)
    api = around.api()
    missing, found = _groups(groups)
    no_disruption = _no_disruption(reading.budgets(api))
    odd: list[str] = []
    daemons = _readable(reading.daemon_sets(api), lambda each: shape_of(_template(each), Asked()), odd)
    pods = list(reading.pods(api))
    pools = {member.name: member.pool for member in seen.fleet.members}
    on: dict[str, list[Resident]] = {}
    for pod in pods:
        if is_on_a_host(pod):
            on.setdefault(node_of(pod), []).append(_resident(pod, no_disruption))
    now_s = seen.fleet.now
    nodes = tuple(
        _node(node, pools[name], tuple(on.get(name, ())), around, settings, now_s)
        for name, node in seen.nodes.items()
        if name in pools
    )
    known, notices = supplies(around.cluster, settings, nodes, found, daemons, memory.rooms)
    choices = choices_of(known, settings)
    gangs = _gangs(around)
    waits = _readable((pod for pod in pods if is_waiting(pod)), lambda pod: waiting(pod, choices, gangs), odd)
    return World(now_s, known, found, nodes, tuple(waits), seen.fleet, missing, (*notices, *odd))


def _readable(things: Iterable[Doc], read: Callable[[Doc], T], odd: list[str]) -> list[T]:
    """What can be read. Whoever may make an object has words in it: of one that can't be read, the others take no harm."""
    found = []
    for each in things:
        try:
            found.append(read(each))
        except Exception as error:  # noqa: BLE001
            odd.append(f"{name_of(each)} is left out, for it can't be read: {str(error)[:_LONGEST]!r}")
    return found


def _resident(pod: Doc, no_disruption: Callable[[Doc], bool]) -> Resident:
    """One that can't be read keeps its host: nobody knows what would be lost."""
    try:
        return resident(pod, no_disruption(pod))
    except Exception as error:  # noqa: BLE001
        return Resident(name_of(pod), Shape(Resources()), keeps=f"can't be read: {str(error)[:_LONGEST]!r}")


def _groups(groups: Groups) -> tuple[tuple[str, ...], Mapping[str, Group]]:
    try:
        return (), groups.read()
    except GroupError as error:
        return (f"the groups of machines ({error})",), {}


def _gangs(around: Around) -> Gangs:
    spec = around.cluster.spec
    return gangs_of(reading.pod_groups(around.api(), spec.kubernetes.version)) if spec.scheduling.gangs else NO_GANGS


def _template(daemon_set: Mapping[str, Any]) -> dict[str, Any]:
    """A pod as the DaemonSet makes them. Its controller adds tolerations for nodes in trouble, which new hosts aren't."""
    template = daemon_set["spec"]["template"]
    metadata = {**template.get("metadata", {}), "namespace": daemon_set["metadata"]["namespace"]}
    return {"metadata": metadata, "spec": template["spec"]}


def _node(
    node: client.V1Node, pool: str, residents: tuple[Resident, ...], around: Around, settings: Autoscaler, now_s: float
) -> Node:
    meta, spec = node.metadata, node.spec
    condition = next((each for each in node.status.conditions or () if each.type == "Ready"), None)
    changed = condition.last_transition_time if condition else meta.creation_timestamp
    since_s = (changed or meta.creation_timestamp).timestamp()
    allocatable = Resources.of(there(node.status.allocatable or {}))
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
    """Whether a budget lets no pod like one go now."""
    tight: dict[str, list[Mapping[str, Any]]] = {}
    for each in budgets:
        if not (each.get("status") or {}).get("disruptionsAllowed"):
            tight.setdefault(each["metadata"]["namespace"], []).append(each["spec"].get("selector") or {})

    def holds(pod: Mapping[str, Any]) -> bool:
        labels = pod["metadata"].get("labels") or {}
        return any(_fits(selector, labels) for selector in tight.get(pod["metadata"]["namespace"], ()))

    return holds


def _fits(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """kubernetes.io, "Labels and Selectors"; an empty selector of a policy/v1 budget fits every pod."""
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
    """(provider id, name) of every Node that has one: how a cloud's machines are known to be nodes."""
    for node in reading.listed(api, "/api/v1/nodes"):
        if id := node["spec"].get("providerID"):
            yield id, node["metadata"]["name"]
