"""One round: look at hosts, pods and namespaces, plan, refuse or apply. Cut anywhere, the next round does the rest.

The directory is not asked: what `tenancy sync` made of it stands on the namespaces. So a host that joins gets its team
while the directory is down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any

from kubernetes.client.exceptions import ApiException

from clients.kube import Kube, Place, key_of
from cluster.allocations import BORROWED, BORROWED_PRIORITY, SYSTEM_NAMESPACES, TEAM_KEY
from cluster.pools import TaintEffect
from cluster.spec import Cluster
from cluster.tenancy import Tenancy
from controllers.tenancy.capacity.guard import refusals
from controllers.tenancy.capacity.hosts import Host, hosts_of, is_system, is_team_taint, taint_of
from controllers.tenancy.capacity.plan import Known, Move, Plan, plan
from controllers.tenancy.capacity.policies import ADMISSION, objects
from controllers.tenancy.directory import Kind
from controllers.tenancy.directory.model import NoPoliciesError
from controllers.tenancy.sync.compare import differences
from controllers.tenancy.sync.kube import kube_of
from controllers.tenancy.sync.objects import Object
from controllers.tenancy.sync.run import Access, said
from controllers.tenancy.sync.seen import space_of
from operations import drain

LEASE = "menagerie-tenancy-capacity"
"""Whoever runs it again and again holds it."""
_ATTEMPTS = 20
_MUTATING = ("v1", "v1beta1")
"""Versions of MutatingAdmissionPolicy, the best first: v1 since Kubernetes 1.36 (components/control_plane/flags.py)."""


@dataclass(frozen=True)
class Rule:
    """A policy or class that is not as it should be, and in what."""

    thing: Object
    reason: str

    @property
    def what(self) -> str:
        return f"{self.thing['kind']} {self.thing['metadata']['name']}"


@dataclass(frozen=True)
class Found:
    """A look. refused: why no host may change hands."""

    hosts: tuple[Host, ...]
    rules: tuple[Rule, ...]
    plan: Plan
    refused: tuple[str, ...] = ()

    @property
    def changes(self) -> int:
        return len(self.rules) + len(self.plan.changes)


@dataclass(frozen=True)
class Applied:
    """made, failed: what of a rule or a host; of failures what the API said. evicted: pods. kept: pods that may not be, and why."""

    made: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    evicted: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


class Capacity:
    """A cluster's hosts and the allocations of its spec."""

    def __init__(self, access: Access, cluster: Cluster, settings: Tenancy) -> None:
        self._cluster, self._settings = cluster, settings
        self._api = access.api()
        places = places_of(kube_of(self._api))
        self._mutating = places["MutatingAdmissionPolicy"].group
        self._kube = kube_of(self._api, places)

    def look(self, *, accept_loss: bool = False) -> Found:
        """Reads only."""
        namespaces = list(self._kube.list("Namespace"))
        nodes = list(self._kube.list("Node"))
        hosts, strays = hosts_of(self._cluster, nodes, self._kube.list("Pod"), namespaces)
        made = plan(self._settings.allocations, hosts, known(namespaces, self._settings))
        notices = (*made.notices, *_strays(strays), *self._classes(), *_freed(namespaces, self._settings))
        made = Plan(made.moves, made.conflicts, notices)
        refused = refusals(made, hosts, self._settings, accept_loss=accept_loss)
        return Found(hosts, tuple(self._rules()), made, refused)

    def apply(self, found: Found, tell: Callable[[str], None] = lambda _: None, *, evict: bool = False) -> Applied:
        """What restricts pods first, then hosts. evict: end the pods that moves wait for, as far as their budgets allow."""
        if found.refused:
            raise ValueError("a refused plan is never applied")
        rules = _each(((rule.what, partial(self._kube.apply, rule.thing)) for rule in found.rules), tell)
        if rules.failed:
            return rules  # without its policies no host may be a team's
        moves = found.plan.moves
        done = _each(((move.host.name, partial(self._move, move)) for move in found.plan.changes), tell)
        broken = {name for name, _ in done.failed}
        ended = self._evict(move for move in moves if evict and move.waits and move.host.name not in broken)
        return Applied(rules.made + done.made, done.failed, *ended)

    def _move(self, move: Move) -> None:
        """A patch of the Node as it was when looked at: taints are one list, which others write too."""
        for left in reversed(range(_ATTEMPTS)):
            body = patch(self._kube.read("Node", move.host.name), label=move.label, taint=move.after)
            try:
                self._kube.patch(("Node", "", move.host.name), body)
                return
            except ApiException as error:
                if error.status != HTTPStatus.CONFLICT or not left:
                    raise

    def _evict(self, moves: Iterable[Move]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        evicted, kept = [], []
        for move in moves:
            for pod in drain.pods_on(self._api, move.host.name):
                name = drain.name_of(pod)
                if name not in move.waits:
                    continue
                what, why = drain.fate(pod, drain.Rules())
                why = drain.evict(self._api, pod) if what is drain.Fate.LEAVES else why
                if why:
                    kept.append(f"{name} {why}")
                else:
                    evicted.append(name)
        return tuple(evicted), tuple(kept)

    def _rules(self) -> Iterable[Rule]:
        wanted = objects(self._settings.borrowing, self._mutating)
        there = {key_of(each): each for kind in {each["kind"] for each in wanted} for each in self._kube.list(kind)}
        for thing in wanted:
            seen = there.get(key_of(thing))
            if reasons := differences(thing, seen) if seen else ["it is missing"]:
                yield Rule(thing, "; ".join(reasons))

    def _classes(self) -> Iterable[str]:
        for each in self._kube.list("PriorityClass"):
            name, value = each["metadata"]["name"], int(each["value"])
            if value <= BORROWED_PRIORITY and name != BORROWED:
                yield (
                    f"PriorityClass {name} has {value}, not above {BORROWED}: its pods can't have their own team's hosts back; "
                    "give it a higher value"
                )


def _each(steps: Iterable[tuple[str, Callable[[], object]]], tell: Callable[[str], None]) -> Applied:
    made: list[str] = []
    failed: list[tuple[str, str]] = []
    for what, step in steps:
        try:
            step()
        except ApiException as error:
            failed.append((what, f"{error.status} {error.reason}: {said(error)}"))
        else:
            made.append(what)
            tell(what)
    return Applied(tuple(made), tuple(failed))


def known(namespaces: Iterable[Object], settings: Tenancy) -> Known:
    """The teams that `tenancy sync` made."""
    spaces = [space_of(each, settings) for each in namespaces]
    return Known(
        {
            each.tenant.name: each.frozen
            for each in spaces
            if each.tenant and each.tenant.kind is Kind.TEAM and not each.ending
        }
    )


def patch(node: Object, *, label: str, taint: str) -> dict[str, Any]:
    """The merge patch that changes a Node's team and nothing else, refused where somebody was quicker."""
    metadata: dict[str, Any] = {
        "resourceVersion": node["metadata"]["resourceVersion"],
        "labels": {TEAM_KEY: label or None},
    }
    if taint_of(node) == taint:
        return {"metadata": metadata}
    taints = [each for each in (node.get("spec") or {}).get("taints") or () if not is_team_taint(each)]
    own = [{"key": TEAM_KEY, "value": taint, "effect": TaintEffect.NO_SCHEDULE.value}] if taint else []
    return {"metadata": metadata, "spec": {"taints": taints + own or None}}


def places_of(kube: Kube) -> dict[str, Place]:
    """Where mutating policies are, in the best version that there is. NoPoliciesError where there is none."""
    for version in _MUTATING:
        group = f"{ADMISSION}/{version}"
        if kube.serves(Place(group, "mutatingadmissionpolicies")):
            return {
                "MutatingAdmissionPolicy": Place(group, "mutatingadmissionpolicies"),
                "MutatingAdmissionPolicyBinding": Place(group, "mutatingadmissionpolicybindings"),
            }
    raise NoPoliciesError(
        "the API servers serve no MutatingAdmissionPolicy, so no pod would be given its team's toleration; they were made by an "
        "earlier Menagerie: menagerie up makes them anew"
    )


def _strays(names: tuple[str, ...]) -> Iterable[str]:
    if names:
        yield f"of no pool of the spec, and with {TEAM_KEY}: {', '.join(names)}; allocations leave them as they are"


def _freed(namespaces: Iterable[Object], settings: Tenancy) -> Iterable[str]:
    for each in namespaces:
        if is_system(each) and each["metadata"]["name"] not in SYSTEM_NAMESPACES and space_of(each, settings).tenant:
            yield f"namespace {each['metadata']['name']} has a tenant, and its label lets its pods go to all teams' hosts"
