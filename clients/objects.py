"""Objects of a cluster's API as plain JSON: their keys, and the API path of each kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

Object = Mapping[str, Any]
Key = tuple[str, str, str]
"""Kind, namespace ("" for cluster-scoped objects), name."""


def key_of(thing: Object) -> Key:
    """Return an object's key."""
    metadata = thing["metadata"]
    return thing["kind"], metadata.get("namespace", ""), metadata["name"]


def named(key: Key) -> str:
    """Return the key for people: ``Deployment menagerie-system/tenancy-sync``."""
    kind, inside, name = key
    return f"{kind} {inside}/{name}" if inside else f"{kind} {name}"


def as_json(key: Key) -> dict[str, str]:
    """Return the key as `--json` prints it."""
    return dict(zip(("kind", "namespace", "name"), key, strict=True))


class Place(NamedTuple):
    """The API path of a kind."""

    group: str
    plural: str

    def path(self, inside: str = "", name: str = "") -> str:
        """Return the path. inside: the namespace, "" for none or all. name: "" for the list."""
        base = f"/api/{self.group}" if "/" not in self.group else f"/apis/{self.group}"
        return "/".join([base, *(["namespaces", inside] if inside else []), self.plural, *([name] if name else [])])


_RBAC = "rbac.authorization.k8s.io/v1"
_ADMISSION = "admissionregistration.k8s.io/v1"
PLACES: Mapping[str, Place] = {
    "ClusterRole": Place(_RBAC, "clusterroles"),
    "ClusterRoleBinding": Place(_RBAC, "clusterrolebindings"),
    "ConfigMap": Place("v1", "configmaps"),
    "CronJob": Place("batch/v1", "cronjobs"),
    "DaemonSet": Place("apps/v1", "daemonsets"),
    "Deployment": Place("apps/v1", "deployments"),
    "Event": Place("v1", "events"),
    "Job": Place("batch/v1", "jobs"),
    "Lease": Place("coordination.k8s.io/v1", "leases"),
    "LimitRange": Place("v1", "limitranges"),
    "Namespace": Place("v1", "namespaces"),
    "Node": Place("v1", "nodes"),
    "Pod": Place("v1", "pods"),
    "PodDisruptionBudget": Place("policy/v1", "poddisruptionbudgets"),
    "PersistentVolume": Place("v1", "persistentvolumes"),
    "PriorityClass": Place("scheduling.k8s.io/v1", "priorityclasses"),
    "ReplicaSet": Place("apps/v1", "replicasets"),
    "ResourceQuota": Place("v1", "resourcequotas"),
    "Role": Place(_RBAC, "roles"),
    "RoleBinding": Place(_RBAC, "rolebindings"),
    "Secret": Place("v1", "secrets"),
    "ServiceAccount": Place("v1", "serviceaccounts"),
    "StatefulSet": Place("apps/v1", "statefulsets"),
    "ValidatingAdmissionPolicy": Place(_ADMISSION, "validatingadmissionpolicies"),
    "ValidatingAdmissionPolicyBinding": Place(_ADMISSION, "validatingadmissionpolicybindings"),
}
"""Kind -> its path. Kinds whose version depends on the API server are not in it."""
