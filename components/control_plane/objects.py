"""Builders of Kubernetes objects for several manifests."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]
_RBAC = "rbac.authorization.k8s.io"


def applied(thing: Object, *, yields: bool = False) -> Object:
    """Return an object as `menagerie_host.bootstrap` expects it. yields: keep fields that somebody else changed."""
    return {"path": path(thing), "force": not yields, "object": thing}


def path(thing: Object) -> str:
    """Return the object's path in the API."""
    version, kind = thing["apiVersion"], thing["kind"].lower()
    root = f"/api/{version}" if version == "v1" else f"/apis/{version}"
    namespace = thing["metadata"].get("namespace")
    plural = f"{kind.removesuffix('y')}ies" if kind.endswith("y") else f"{kind}{'es' if kind.endswith('s') else 's'}"
    place = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}{place}/{plural}/{thing['metadata']['name']}"


def group(name: str) -> Object:
    """Return a group as the subject of a binding."""
    return {"kind": "Group", "name": name, "apiGroup": _RBAC}


def user(name: str) -> Object:
    """Return a user as the subject of a binding."""
    return {"kind": "User", "name": name, "apiGroup": _RBAC}


def cluster_role(name: str, rules: list[Object]) -> Object:
    """Return a ClusterRole."""
    return {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}


def cluster_role_binding(name: str, role: str, subject: Object) -> Object:
    """Return a binding of a ClusterRole to one subject, in all namespaces."""
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }


def role(name: str, rules: list[Object], namespace: str = "kube-system") -> Object:
    """Return a Role in one namespace."""
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": rules}


def role_binding(name: str, role: str, subject: Object, namespace: str = "kube-system") -> Object:
    """Return a binding of a Role to one subject, in the Role's namespace."""
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": namespace},
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": role},
        "subjects": [subject],
    }
