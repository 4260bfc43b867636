"""One round: look at hosts, pods and namespaces, plan, refuse or apply. If a round is interrupted, the next one does the rest.

The directory is not read: `tenancy sync` has written what matters to the namespaces. A host that joins therefore gets its team
even while the directory is down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any

from kubernetes.client.exceptions import ApiException

from clients.kube import Kube
from clients.objects import Place, key_of
from cluster.allocations import BORROWED, BORROWED_PRIORITY, SYSTEM_NAMESPACES, TEAM_KEY
from cluster.pools import TaintEffect
from cluster.spec import Cluster
from cluster.tenancy import Tenancy
from controllers.tenancy.capacity.guard import refusals
from controllers.tenancy.capacity.hosts import TeamHost, hosts_of, is_system, is_team_taint, taint_of
from controllers.tenancy.capacity.plan import AllocationPlan, HostMove, KnownTeams, plan
from controllers.tenancy.capacity.policies import ADMISSION, objects
from controllers.tenancy.directory import TenantKind
from controllers.tenancy.directory.model import NoPoliciesError
from controllers.tenancy.sync.compare import differences
from controllers.tenancy.sync.kube import kube_of
from controllers.tenancy.sync.objects import Object
from controllers.tenancy.sync.run import ApiAccess, api_message
from controllers.tenancy.sync.state import space_of
from operations import drain

LEASE = "menagerie-tenancy-capacity"
"""Held by the process that runs rounds continuously."""
_ATTEMPTS = 20
_MUTATING = ("v1", "v1beta1")
"""Versions of MutatingAdmissionPolicy, the best first: v1 since Kubernetes 1.36 (components/control_plane/kube_apiserver.py)."""


@dataclass(frozen=True)
class Rule:
    """A policy or PriorityClass that differs from the desired one, and how."""

    thing: Object
    reason: str

    @property
    def what(self) -> str:
        return f"{self.thing['kind']} {self.thing['metadata']['name']}"


@dataclass(frozen=True)
class CapacityReview:
    """The result of a look. refused: why no host may be moved."""

    hosts: tuple[TeamHost, ...]
    rules: tuple[Rule, ...]
    plan: AllocationPlan
    refused: tuple[str, ...] = ()

    @property
    def changes(self) -> int:
        return len(self.rules) + len(self.plan.changes)


@dataclass(frozen=True)
class Applied:
    """The result of an apply.

    changes: rules and hosts that were changed. failed: those that were not, with the API's answer. evicted: pods. kept: pods that were
    not evicted, and why.
    """

    changes: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    evicted: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


class Capacity:
    """A cluster's hosts and the allocations of its spec."""

    def __init__(self, access: ApiAccess, cluster: Cluster, settings: Tenancy) -> None:
        self._cluster, self._settings = cluster, settings
        self._api = access.api()
        places = places_of(kube_of(self._api))
        self._mutating = places["MutatingAdmissionPolicy"].group
        self._kube = kube_of(self._api, places)

    def look(self, *, accept_loss: bool = False) -> CapacityReview:
        """Read the cluster and plan; change nothing."""
        namespaces = list(self._kube.list("Namespace"))
        nodes = list(self._kube.list("Node"))
        hosts, strays = hosts_of(self._cluster, nodes, self._kube.list("Pod"), namespaces)
        planned = plan(self._settings.allocations, hosts, teams_with_namespace(namespaces, self._settings))
        notices = (*planned.notices, *_strays(strays), *self._classes(), *_freed(namespaces, self._settings))
        planned = AllocationPlan(planned.moves, planned.conflicts, notices)
        refused = refusals(planned, hosts, self._settings, accept_loss=accept_loss)
        return CapacityReview(hosts, tuple(self._rules()), planned, refused)

    def apply(
        self, review: CapacityReview, tell: Callable[[str], None] = lambda _: None, *, evict: bool = False
    ) -> Applied:
        """Apply the rules for pods first, then move hosts. evict: evict the pods that moves wait for, as their budgets allow."""
        if review.refused:
            raise ValueError("a refused plan is never applied")
        rules = _each(((rule.what, partial(self._kube.apply, rule.thing)) for rule in review.rules), tell)
        if rules.failed:
            return rules  # without the policies no host may belong to a team
        moves = review.plan.moves
        done = _each(((move.host.name, partial(self._move, move)) for move in review.plan.changes), tell)
        broken = {name for name, _ in done.failed}
        ended = self._evict(move for move in moves if evict and move.waits and move.host.name not in broken)
        return Applied(rules.changes + done.changes, done.failed, *ended)

    def _move(self, move: HostMove) -> None:
        """Patch the Node at the version that was read, and retry on conflict: taints are one list, which others write too."""
        for left in reversed(range(_ATTEMPTS)):
            body = patch(self._kube.read("Node", move.host.name), label=move.label, taint=move.after)
            try:
                self._kube.patch(("Node", "", move.host.name), body)
                return
            except ApiException as error:
                if error.status != HTTPStatus.CONFLICT or not left:
                    raise

    def _evict(self, moves: Iterable[HostMove]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        evicted, kept = [], []
        for move in moves:
            for pod in drain.pods_on(self._api, move.host.name):
                name = drain.name_of(pod)
                if name not in move.waits:
                    continue
                what, why = drain.fate(pod, drain.Rules())
                why = drain.evict(self._api, pod) if what is drain.PodFate.LEAVES else why
                if why:
                    kept.append(f"{name} {why}")
                else:
                    evicted.append(name)
        return tuple(evicted), tuple(kept)

    def _rules(self) -> Iterable[Rule]:
        desired = objects(self._settings.borrowing, self._mutating)
        existing = {key_of(each): each for kind in {each["kind"] for each in desired} for each in self._kube.list(kind)}
        for thing in desired:
            actual = existing.get(key_of(thing))
            if reasons := differences(thing, actual) if actual else ["it is missing"]:
                yield Rule(thing, "; ".join(reasons))

    def _classes(self) -> Iterable[str]:
        for each in self._kube.list("PriorityClass"):
            name, value = each["metadata"]["name"], int(each["value"])
            if value <= BORROWED_PRIORITY and name != BORROWED:
                yield (
                    f"PriorityClass {name} has value {value}, which is not above that of {BORROWED}: its pods can't reclaim their own team's "
                    "hosts; give it a higher value"
                )


def _each(steps: Iterable[tuple[str, Callable[[], object]]], tell: Callable[[str], None]) -> Applied:
    made: list[str] = []
    failed: list[tuple[str, str]] = []
    for what, step in steps:
        try:
            step()
        except ApiException as error:
            failed.append((what, f"{error.status} {error.reason}: {api_message(error)}"))
        else:
            made.append(what)
            tell(what)
    return Applied(tuple(made), tuple(failed))


def teams_with_namespace(namespaces: Iterable[Object], settings: Tenancy) -> KnownTeams:
    """Return the teams with a namespace of `tenancy sync`."""
    spaces = [space_of(each, settings) for each in namespaces]
    return KnownTeams(
        {
            each.tenant.name: each.frozen
            for each in spaces
            if each.tenant and each.tenant.kind is TenantKind.TEAM and not each.ending
        }
    )


def patch(node: Object, *, label: str, taint: str) -> dict[str, Any]:
    """Return the merge patch that changes a Node's team and nothing else. The API refuses it if the Node has changed meanwhile."""
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
    """Return the places of mutating policies, in the best version that is served. Errors: raises NoPoliciesError if none is."""
    for version in _MUTATING:
        group = f"{ADMISSION}/{version}"
        if kube.serves(Place(group, "mutatingadmissionpolicies")):
            return {
                "MutatingAdmissionPolicy": Place(group, "mutatingadmissionpolicies"),
                "MutatingAdmissionPolicyBinding": Place(group, "mutatingadmissionpolicybindings"),
            }
    raise NoPoliciesError(
        "the API servers do not serve MutatingAdmissionPolicy, so no pod would get its team's toleration; an earlier Menagerie "
        "configured them: `menagerie up` replaces them"
    )


def _strays(names: tuple[str, ...]) -> Iterable[str]:
    if names:
        yield f"nodes with {TEAM_KEY} that belong to no pool of the spec: {', '.join(names)}; allocations do not change them"


def _freed(namespaces: Iterable[Object], settings: Tenancy) -> Iterable[str]:
    for each in namespaces:
        if is_system(each) and each["metadata"]["name"] not in SYSTEM_NAMESPACES and space_of(each, settings).tenant:
            yield f"namespace {each['metadata']['name']} belongs to a tenant, but its label menagerie.dev/system lets its pods run on all teams' hosts"
