"""What the namespace of a person or a team holds. No I/O.

Objects are applied on the server's side under a field manager of our own: whatever others add to them stays. Nothing is
ever taken away by deleting it: somebody who left has a binding without subjects, and a quota of no pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cluster import counts
from cluster.allocations import MEMBER_LABEL
from cluster.tenancy import TEAM_LABEL, TENANT_LABEL, Allowance, PodSecurity, Tenancy
from controllers.tenancy.directory import Kind, Roster, Tenant
from controllers.tenancy.directory.names import slug

Object = Mapping[str, Any]

MANAGER = "menagerie-tenancy"
"""The field manager; it marks a namespace as ours, whatever becomes of its labels."""
PERSON_LABEL = "menagerie.dev/person"
FROZEN_LABEL = "menagerie.dev/frozen"
"""Label "true", and annotation with the day, of a namespace whose person or team has left."""
NAME = "menagerie.dev/name"
"""Annotation: the id in the directory, which a label may not be able to hold."""
WORKLOAD = "menagerie.dev/workload"
"""Annotation of a frozen namespace: what became of what ran there, keep or stop."""
EDITORS, OWNERS = "menagerie:editors", "menagerie:owners"
"""RoleBindings."""
ALLOWANCE = "menagerie"
"""The ResourceQuota, and the LimitRange."""
OWNER_ROLE = "menagerie:team-owner"
"""The ClusterRole of owners. Who may write bindings and has Kubernetes' edit can give others edit, view and parts of them: the
API server refuses to give what the giver has not (RBAC, "Privilege escalation prevention")."""
ANY = "*"
EDIT = "edit"
"""Kubernetes' own ClusterRole: what people may do in their namespaces."""
_VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]
_NOT_COUNTED_GROUPS = ("extensions", "events.k8s.io")
"""One that no release serves any more; and Events, which lie in another etcd."""
_RBAC = "rbac.authorization.k8s.io"
_PSS = "pod-security.kubernetes.io"
MANAGED_LABEL = "app.kubernetes.io/managed-by"
_MANAGED = {MANAGED_LABEL: MANAGER}


def cluster_role() -> Object:
    """What owners of teams may do beside editing."""
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": OWNER_ROLE, "labels": _MANAGED},
        "rules": [{"apiGroups": [_RBAC], "resources": ["rolebindings"], "verbs": _VERBS}],
    }


def wanted(
    tenant: Tenant, name: str, roster: Roster, settings: Tenancy, *, frozen: str = "", kinds: Iterable[str] = ()
) -> Iterator[Object]:
    """The namespace `name` and all of ours in it. frozen: the day it was, "" of who is here. kinds: what people may make beside
    Kubernetes' own, as quotas count it."""
    yield _namespace(tenant, name, roster, settings, frozen)
    yield from _inside(tenant, name, roster, settings, kinds, frozen=bool(frozen))


def _namespace(tenant: Tenant, name: str, roster: Roster, settings: Tenancy, frozen: str) -> Object:
    level = allowance(tenant, settings).pod_security or settings.pod_security
    warned = PodSecurity.RESTRICTED
    labels = {
        **_MANAGED,
        TENANT_LABEL: str(tenant.kind),
        (PERSON_LABEL if tenant.kind is Kind.PERSON else TEAM_LABEL): slug(tenant.name),
        f"{_PSS}/enforce": str(level),
        f"{_PSS}/audit": str(warned),
        f"{_PSS}/warn": str(warned),
    }
    if tenant.kind is Kind.PERSON and not frozen:
        labels |= {f"{MEMBER_LABEL}{slug(team)}": "true" for team in roster.teams_of(tenant.name)}
    annotations = {NAME: tenant.name}
    if frozen:
        labels[FROZEN_LABEL] = "true"
        annotations |= {FROZEN_LABEL: frozen, WORKLOAD: str(settings.leavers)}
    metadata = {"name": name, "labels": labels, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _inside(
    tenant: Tenant, name: str, roster: Roster, settings: Tenancy, kinds: Iterable[str], *, frozen: bool
) -> Iterator[Object]:
    own = allowance(tenant, settings)
    hard = {**quota(tenant, settings, kinds), **({"pods": "0"} if frozen else {})}
    yield _object("v1", "ResourceQuota", name, ALLOWANCE, spec={"hard": hard})
    yield _object("v1", "LimitRange", name, ALLOWANCE, spec={"limits": _limits(own)})
    editors, owners = ((), ()) if frozen else _rights(tenant, roster)
    yield binding(name, EDITORS, "edit", editors, settings)
    if tenant.kind is Kind.TEAM:
        yield binding(name, OWNERS, OWNER_ROLE, owners, settings)


def binding(inside: str, name: str, role: str, people: tuple[str, ...], settings: Tenancy) -> Object:
    """A role in a namespace, for people. Without any it gives nobody anything."""
    subjects = [{"kind": "User", "apiGroup": _RBAC, "name": f"{settings.user_prefix}{id}"} for id in people]
    role_ref = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role}
    return _object(f"{_RBAC}/v1", "RoleBinding", inside, name, roleRef=role_ref, subjects=subjects)


def allowance(tenant: Tenant, settings: Tenancy) -> Allowance:
    """What the settings say of one of its kind, and of itself."""
    return settings.people if tenant.kind is Kind.PERSON else counts.team(settings, tenant.name)


def quota(tenant: Tenant, settings: Tenancy, kinds: Iterable[str] = ()) -> dict[str, str]:
    """What it may have, and how many of each kind. kinds: beside Kubernetes' own."""
    own = allowance(tenant, settings)
    return counts.people(own, kinds) if tenant.kind is Kind.PERSON else counts.teams(own, kinds)


def makes(role: Object) -> tuple[str, ...]:
    """The kinds that a ClusterRole lets people make, as quotas count them; ANY is in one that stands for several."""
    found = {
        f"count/{resource}.{group}" if group else f"count/{resource}"
        for rule in role.get("rules") or ()
        if {"create", ANY} & {*rule["verbs"]}
        for group in rule.get("apiGroups") or ()
        for resource in rule.get("resources") or ()
        if "/" not in resource and group not in _NOT_COUNTED_GROUPS and resource != "events"
    }
    return tuple(sorted(found))


def _rights(tenant: Tenant, roster: Roster) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(who edits, who owns), without people who have left."""
    if tenant.kind is Kind.PERSON:
        return (tenant.name,), ()
    team = roster.teams[tenant.name]
    editors, owners = ({*people} & roster.active for people in (team.everybody, team.owners))
    return tuple(sorted(editors)), tuple(sorted(owners))


def _limits(own: Allowance) -> list[Object]:
    """One item for containers, as the API server completes it (k8s.io/kubernetes, pkg/apis/core/v1/defaults.go)."""
    given = own.limits
    default = {**given.max, **given.default}
    parts = {"max": given.max, "default": default, "defaultRequest": {**default, **given.default_request}}
    item = {key: value for key, value in parts.items() if value}
    return [{"type": "Container", **item}] if item else []


def _object(version: str, kind: str, inside: str, name: str, **more: Any) -> Object:
    metadata = {"name": name, "namespace": inside, "labels": _MANAGED}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}
