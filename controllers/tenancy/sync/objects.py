"""The objects in the namespace of a person or a team. No I/O.

Objects are applied by server-side apply with our own field manager, so what others add to them stays. Nothing is withdrawn by
deleting an object: after somebody leaves, their binding has no subjects and their quota allows no pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cluster import counts
from cluster.allocations import MEMBER_LABEL
from cluster.tenancy import TEAM_LABEL, TENANT_LABEL, Allowance, PodSecurity, Tenancy
from controllers.tenancy.directory import Roster, Tenant, TenantKind
from controllers.tenancy.directory.names import slug

Object = Mapping[str, Any]

MANAGER = "menagerie-tenancy"
"""The field manager. It marks a namespace as ours even if its labels change."""
PERSON_LABEL = "menagerie.dev/person"
FROZEN_LABEL = "menagerie.dev/frozen"
"""On a namespace whose person or team has left: label "true", and annotation with the day."""
NAME = "menagerie.dev/name"
"""Annotation: the id in the directory, which may not be a valid label value."""
WORKLOAD = "menagerie.dev/workload"
"""Annotation of a frozen namespace: what happened to its workloads, keep or stop."""
EDITORS, OWNERS = "menagerie:editors", "menagerie:owners"
"""Names of the RoleBindings."""
ALLOWANCE = "menagerie"
"""Name of the ResourceQuota and of the LimitRange."""
OWNER_ROLE = "menagerie:team-owner"
"""The ClusterRole of owners. A user with Kubernetes' edit who may write bindings can grant edit, view and parts of them: the API
server refuses to grant what the granting user lacks (RBAC, "Privilege escalation prevention")."""
ANY = "*"
EDIT = "edit"
"""Kubernetes' own ClusterRole: what people may do in their namespaces."""
_VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]
_NOT_COUNTED_GROUPS = ("extensions", "events.k8s.io")
"""An API group that no release serves any more, and Events, which are stored in etcd events."""
_RBAC = "rbac.authorization.k8s.io"
_PSS = "pod-security.kubernetes.io"
MANAGED_LABEL = "app.kubernetes.io/managed-by"
_MANAGED = {MANAGED_LABEL: MANAGER}


def cluster_role() -> Object:
    """Return the ClusterRole with what owners of teams may do besides edit."""
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": OWNER_ROLE, "labels": _MANAGED},
        "rules": [{"apiGroups": [_RBAC], "resources": ["rolebindings"], "verbs": _VERBS}],
    }


def desired_objects(
    tenant: Tenant, name: str, roster: Roster, settings: Tenancy, *, frozen: str = "", kinds: Iterable[str] = ()
) -> Iterator[Object]:
    """Yield the namespace `name` and all our objects in it.

    frozen: the day it was frozen, "" if it isn't. kinds: kinds that people may create besides Kubernetes' own, as quotas count them.
    """
    yield _namespace(tenant, name, roster, settings, frozen)
    yield from _inside(tenant, name, roster, settings, kinds, frozen=bool(frozen))


def _namespace(tenant: Tenant, name: str, roster: Roster, settings: Tenancy, frozen: str) -> Object:
    level = allowance(tenant, settings).pod_security or settings.pod_security
    warned = PodSecurity.RESTRICTED
    labels = {
        **_MANAGED,
        TENANT_LABEL: str(tenant.kind),
        (PERSON_LABEL if tenant.kind is TenantKind.PERSON else TEAM_LABEL): slug(tenant.name),
        f"{_PSS}/enforce": str(level),
        f"{_PSS}/audit": str(warned),
        f"{_PSS}/warn": str(warned),
    }
    if tenant.kind is TenantKind.PERSON and not frozen:
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
    if tenant.kind is TenantKind.TEAM:
        yield binding(name, OWNERS, OWNER_ROLE, owners, settings)


def binding(inside: str, name: str, role: str, people: tuple[str, ...], settings: Tenancy) -> Object:
    """Return a RoleBinding of people to a role in a namespace. Without people it grants nothing."""
    subjects = [{"kind": "User", "apiGroup": _RBAC, "name": f"{settings.user_prefix}{id}"} for id in people]
    role_ref = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role}
    return _object(f"{_RBAC}/v1", "RoleBinding", inside, name, roleRef=role_ref, subjects=subjects)


def allowance(tenant: Tenant, settings: Tenancy) -> Allowance:
    """Return what the settings allow the tenant: those of its kind, and a team's own."""
    return settings.people if tenant.kind is TenantKind.PERSON else counts.team(settings, tenant.name)


def quota(tenant: Tenant, settings: Tenancy, kinds: Iterable[str] = ()) -> dict[str, str]:
    """Return the tenant's quota: resources, and number of objects of each kind. kinds: besides Kubernetes' own."""
    own = allowance(tenant, settings)
    return counts.people(own, kinds) if tenant.kind is TenantKind.PERSON else counts.teams(own, kinds)


def makes(role: Object) -> tuple[str, ...]:
    """Return the kinds that a ClusterRole lets people create, as quotas count them. A kind with ANY in it stands for several."""
    kinds = {
        f"count/{resource}.{group}" if group else f"count/{resource}"
        for rule in role.get("rules") or ()
        if {"create", ANY} & {*rule["verbs"]}
        for group in rule.get("apiGroups") or ()
        for resource in rule.get("resources") or ()
        if "/" not in resource and group not in _NOT_COUNTED_GROUPS and resource != "events"
    }
    return tuple(sorted(kinds))


def _rights(tenant: Tenant, roster: Roster) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return (editors, owners), without people who have left."""
    if tenant.kind is TenantKind.PERSON:
        return (tenant.name,), ()
    team = roster.teams[tenant.name]
    editors, owners = ({*people} & roster.active for people in (team.everybody, team.owners))
    return tuple(sorted(editors)), tuple(sorted(owners))


def _limits(own: Allowance) -> list[Object]:
    """Return one item for containers, completed as the API server does (k8s.io/kubernetes, pkg/apis/core/v1/defaults.go)."""
    limits = own.limits
    default = {**limits.max, **limits.default}
    parts = {"max": limits.max, "default": default, "defaultRequest": {**default, **limits.default_request}}
    item = {key: value for key, value in parts.items() if value}
    return [{"type": "Container", **item}] if item else []


def _object(version: str, kind: str, inside: str, name: str, **more: Any) -> Object:
    metadata = {"name": name, "namespace": inside, "labels": _MANAGED}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}
