"""What drivers may do in the API: a ClusterRole per sidecar, from the manifests that the sidecars' repositories publish.

No driver reads Secrets or pods, or changes a Node. Leader election uses a separate namespace: RBAC can't restrict which Leases
may be created, and those of the controller manager and the scheduler are in kube-system.
"""

from __future__ import annotations

from components.control_plane.csi.drivers import ATTACHER, PROVISIONER, RESIZER, Driver
from components.control_plane.objects import Object, cluster_role, cluster_role_binding, role, role_binding

NAMESPACE = "csi"
_PREFIX = "menagerie:csi"
_READ = ("get", "list", "watch")
_STORAGE, _CORE = "storage.k8s.io", ""

Rules = dict[tuple[str, str], tuple[str, ...]]
"""(group, resource) -> verbs."""

_EVENTS: Rules = {(_CORE, "events"): ("create", "patch", "update")}
_OF_SIDECARS: dict[str, Rules] = {
    PROVISIONER.name: {
        (_CORE, "persistentvolumes"): (*_READ, "create", "patch", "delete"),
        (_CORE, "persistentvolumeclaims"): (*_READ, "update"),
        (_CORE, "nodes"): _READ,
        (_STORAGE, "csinodes"): _READ,
        (_STORAGE, "storageclasses"): _READ,
        (_STORAGE, "volumeattachments"): _READ,
        (_STORAGE, "volumeattributesclasses"): _READ,
        **_EVENTS,
    },
    ATTACHER.name: {
        (_CORE, "persistentvolumes"): (*_READ, "patch"),
        (_STORAGE, "csinodes"): _READ,
        (_STORAGE, "volumeattachments"): (*_READ, "patch"),
        (_STORAGE, "volumeattachments/status"): ("patch",),
    },
    RESIZER.name: {
        (_CORE, "persistentvolumes"): (*_READ, "patch"),
        (_CORE, "persistentvolumeclaims"): _READ,
        (_CORE, "persistentvolumeclaims/status"): ("patch",),
        (_STORAGE, "volumeattributesclasses"): _READ,
        **_EVENTS,
    },
}
_OF_NODES: Rules = {(_CORE, "nodes"): ("get",), (_STORAGE, "csinodes"): ("get",)}
_LEASES: Rules = {("coordination.k8s.io", "leases"): (*_READ, "create", "update", "patch", "delete")}


def account(driver: Driver, part: str) -> str:
    """Return the name of the ServiceAccount of a driver's controller or node plugin, and of the workload that uses it."""
    return f"{driver.short}-{part}"


def shared(drivers: tuple[Driver, ...]) -> tuple[Object, ...]:
    """Return the namespace and the roles that all drivers share."""
    used = {sidecar.name for driver in drivers for sidecar, _ in driver.sidecars}
    labels = {f"pod-security.kubernetes.io/{what}": "privileged" for what in ("enforce", "audit", "warn")}
    return (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}},
        *(cluster_role(_role(name), _rules(rules)) for name, rules in _OF_SIDECARS.items() if name in used),
        cluster_role(_role("node"), _rules(_OF_NODES)),
        role(_role("leases"), _rules(_LEASES), NAMESPACE),
    )


def of_driver(driver: Driver) -> tuple[Object, ...]:
    """Return a driver's two ServiceAccounts and their role bindings."""
    controller, node = (_subject(account(driver, part)) for part in ("controller", "node"))
    return (
        *(_service_account(subject["name"]) for subject in (controller, node)),
        *(
            cluster_role_binding(f"{_PREFIX}-{driver.short}-{sidecar.name}", _role(sidecar.name), controller)
            for sidecar, _ in driver.sidecars
        ),
        cluster_role_binding(f"{_PREFIX}-{driver.short}-node", _role("node"), node),
        role_binding(f"{_PREFIX}-{driver.short}-leases", _role("leases"), controller, NAMESPACE),
    )


def _role(name: str) -> str:
    return f"{_PREFIX}-{name.removeprefix('csi-')}"


def _rules(rules: Rules) -> list[Object]:
    return [
        {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
        for (group, resource), verbs in rules.items()
    ]


def _subject(name: str) -> Object:
    return {"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}


def _service_account(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": NAMESPACE}}
