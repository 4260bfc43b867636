"""The controllers and their RBAC rules: each may do what it does, and no more. No I/O.

To the authorizer, a list by one name and a server-side apply that may create are requests with a name (k8s.io/apiserver,
requestinfo.go and handlers/patch.go), so both can be limited to names. No controller writes what itself grants rights: roles and
admission policies. An admission policy (`controllers.confinement`) limits where and in which fields it may write, which RBAC
can't express.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from cluster.tenancy import Leavers, Tenancy
from controllers.autoscaler.keys import NOTEBOOK as AUTOSCALER
from controllers.tenancy.capacity import policies
from controllers.tenancy.capacity.run import LEASE as CAPACITY_LEASE
from controllers.tenancy.sync.objects import ALLOWANCE, EDIT, EDITORS, OWNER_ROLE, OWNERS
from controllers.tenancy.sync.run import LEASE as SYNC_LEASE
from controllers.tenancy.sync.run import NOTEBOOK
from operations.removals import NAME as REMOVALS

RBAC = "rbac.authorization.k8s.io"
Rule = dict[str, Any]
METERING_LEASE = "menagerie-metering"
"""Held by the process that keeps the ledger."""


class Size(NamedTuple):
    """What a pod requests, and its limit of memory. In MiB."""

    cpu: str
    memory: int
    most: int


def _small(_: int) -> Size:
    return Size("50m", 192, 1024)


@dataclass(frozen=True)
class ControllerKind:
    """A controller.

    lease: name of its Lease, "" if every pod is at work. every_s: seconds between rounds. notebooks, reads: ConfigMaps in
    kube-system that it writes, and that it only reads. rules: cluster-wide, from the spec's settings. directory, bucket: whether it
    needs the directory's secrets, and the ledger's bucket with its key. pages: whether it serves people. size: of its pods, by the
    cluster's number of nodes.
    """

    name: str
    lease: str
    every_s: int
    about: str
    rules: Callable[[Tenancy], tuple[Rule, ...]]
    notebooks: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    directory: bool = False
    bucket: bool = False
    pages: bool = False
    size: Callable[[int], Size] = _small


def rule(group: str, resources: tuple[str, ...], verbs: tuple[str, ...], names: tuple[str, ...] = ()) -> Rule:
    """Return an RBAC rule. names: limit it to these resources; empty: all."""
    limited = {"resourceNames": list(names)} if names else {}
    return {"apiGroups": [group], "resources": list(resources), **limited, "verbs": list(verbs)}


def _syncs(settings: Tenancy) -> tuple[Rule, ...]:
    stops = ("list", "patch") if settings.leavers is Leavers.STOP else ("list",)
    return (
        # The names of future namespaces are not known.
        rule("", ("namespaces",), ("list", "create", "patch")),
        rule("", ("resourcequotas", "limitranges"), ("list", "create", "patch"), (ALLOWANCE,)),
        rule(RBAC, ("rolebindings", "clusterrolebindings"), ("list",)),
        rule(RBAC, ("rolebindings",), ("create", "patch", "delete"), (EDITORS, OWNERS)),
        rule(RBAC, ("clusterroles",), ("list",), (EDIT, OWNER_ROLE)),
        rule(RBAC, ("clusterroles",), ("bind",), (EDIT, OWNER_ROLE)),
        rule("apps", ("deployments", "statefulsets", "replicasets"), stops),
        rule("batch", ("cronjobs", "jobs"), stops),
    )


def _moves(_: Tenancy) -> tuple[Rule, ...]:
    kinds = (
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    )
    return (
        rule("", ("nodes",), ("get", "list", "patch")),
        rule("", ("namespaces", "pods"), ("list",)),
        rule("scheduling.k8s.io", ("priorityclasses",), ("list",)),
        rule(policies.ADMISSION, kinds, ("list",)),
    )


def _counts(_: Tenancy) -> tuple[Rule, ...]:
    return (
        rule("", ("namespaces", "nodes", "persistentvolumes", "pods"), ("list", "watch")),
        # Of kubelets, to learn when one that is silent was heard last.
        rule("coordination.k8s.io", ("leases",), ("list",)),
    )


def _shows(_: Tenancy) -> tuple[Rule, ...]:
    return (
        rule("", ("nodes", "pods"), ("list",)),
        rule("apps", ("daemonsets", "deployments"), ("list",)),
        rule("policy", ("poddisruptionbudgets",), ("list",)),
        # Of kubelets, for nodes that are silent.
        rule("coordination.k8s.io", ("leases",), ("list",)),
        rule("scheduling.k8s.io", ("podgroups",), ("list",)),
        # Who a token is, and what its owner may read. Nothing is stored.
        rule("authentication.k8s.io", ("tokenreviews",), ("create",)),
        rule("authorization.k8s.io", ("subjectaccessreviews",), ("create",)),
    )


def _of_pages(nodes: int) -> Size:
    """Return the size of pods that keep what pages show.

    Measured with 200 and 800 nodes of 50 images: 200 MB, and 0.14 MB for each node while both parts that list nodes are read. Two
    months of a ledger of 5,000 lines a day, as 7,500 nodes have, need 160 MB more. Reading takes at most two fifths of a CPU.
    """
    memory = 256 + nodes * 16 // 100
    return Size(f"{100 + nodes // 25}m", memory, 2 * memory)


TENANCY_SYNC = ControllerKind(
    "tenancy-sync", SYNC_LEASE, 60, "namespaces of people and teams", _syncs, (NOTEBOOK,), directory=True
)
TENANCY_CAPACITY = ControllerKind("tenancy-capacity", CAPACITY_LEASE, 30, "hosts of teams", _moves)
METERING = ControllerKind("metering", METERING_LEASE, 60, "the ledger of who used what", _counts, bucket=True)
WEB = ControllerKind("web", "", 0, "pages for people", _shows, reads=(REMOVALS, AUTOSCALER), pages=True, size=_of_pages)
KINDS: Mapping[str, ControllerKind] = {each.name: each for each in (TENANCY_SYNC, TENANCY_CAPACITY, METERING, WEB)}


def needed_kinds(settings: Tenancy, *, metering: bool = False, web: bool = False) -> tuple[ControllerKind, ...]:
    """Return the controllers that a spec has work for: without allocations no host belongs to a team.

    metering, web: it has a ledger, and pages.
    """
    more = ((TENANCY_CAPACITY, bool(settings.allocations)), (METERING, metering), (WEB, web))
    return (TENANCY_SYNC, *(kind for kind, needed in more if needed))
