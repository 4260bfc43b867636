"""Shapes of Kubernetes objects that several manifests share."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]
_RBAC = "rbac.authorization.k8s.io"


def group(name: str) -> Object:
    """The subject of a binding: a group."""
    return {"kind": "Group", "name": name, "apiGroup": _RBAC}


def user(name: str) -> Object:
    """The subject of a binding: a user."""
    return {"kind": "User", "name": name, "apiGroup": _RBAC}


def cluster_role(name: str, rules: list[Object]) -> Object:
    """A ClusterRole."""
    return {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}


def cluster_role_binding(name: str, role: str, subject: Object) -> Object:
    """A ClusterRole given to one subject in all namespaces."""
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }


def role(name: str, rules: list[Object]) -> Object:
    """A Role in kube-system."""
    metadata = {"name": name, "namespace": "kube-system"}
    return {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": rules}


def role_binding(name: str, role: str, subject: Object) -> Object:
    """A Role of kube-system given to one subject."""
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": "kube-system"},
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": role},
        "subjects": [subject],
    }
