"""What host-report may do in the API: write its reports, in a namespace that holds nothing else. Pure."""

from __future__ import annotations

from components.control_plane.objects import Object, role, role_binding, user

USER = "menagerie:host-report"
NAMESPACE = "menagerie-reports"


def objects() -> tuple[Object, ...]:
    """Return the namespace, where no pods run, and the rights to its ConfigMaps."""
    # Server-side apply of a new object needs both create and patch.
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "delete", "list", "patch"]}]
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}},
        role(USER, rules, NAMESPACE),
        role_binding(USER, USER, user(USER), NAMESPACE),
    )
