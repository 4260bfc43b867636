"""host-report: its unit, and what it may do in the API: write its reports, in a namespace that holds nothing else. Pure."""

from __future__ import annotations

from components.control_plane.objects import Object, role, role_binding, user
from components.control_plane.service_unit import PYTHON_PATH, Unit, kubeconfig, python

NAME = "host-report"
USER = "menagerie:host-report"
NAMESPACE = "menagerie-reports"


def unit() -> Unit:
    """Return its unit."""
    return Unit(
        name=f"{NAME}.service",
        description="Writes how this host is set up where operators read it",
        documentation="https://www.cisecurity.org/benchmark/kubernetes",
        words=python("report"),
        after=("cluster-bootstrap.service",),
        credentials=(("kubeconfig", kubeconfig(NAME)),),
        settings=(PYTHON_PATH,),
        # Runs as root with nothing hidden: it could not report true modes of hidden files, or see others' processes.
        processes="default",
    )


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
