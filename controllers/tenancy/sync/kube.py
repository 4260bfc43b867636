"""The API paths of the kinds that tenancy uses, and a client for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from clients.kube import Kube, Place
from controllers.tenancy.sync.objects import MANAGER

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

PLACES = {
    "Namespace": Place("v1", "namespaces"),
    "ResourceQuota": Place("v1", "resourcequotas"),
    "LimitRange": Place("v1", "limitranges"),
    "RoleBinding": Place("rbac.authorization.k8s.io/v1", "rolebindings"),
    "ClusterRoleBinding": Place("rbac.authorization.k8s.io/v1", "clusterrolebindings"),
    "ClusterRole": Place("rbac.authorization.k8s.io/v1", "clusterroles"),
    "Deployment": Place("apps/v1", "deployments"),
    "StatefulSet": Place("apps/v1", "statefulsets"),
    "ReplicaSet": Place("apps/v1", "replicasets"),
    "CronJob": Place("batch/v1", "cronjobs"),
    "Job": Place("batch/v1", "jobs"),
    "Node": Place("v1", "nodes"),
    "Pod": Place("v1", "pods"),
    "PriorityClass": Place("scheduling.k8s.io/v1", "priorityclasses"),
    "ValidatingAdmissionPolicy": Place("admissionregistration.k8s.io/v1", "validatingadmissionpolicies"),
    "ValidatingAdmissionPolicyBinding": Place("admissionregistration.k8s.io/v1", "validatingadmissionpolicybindings"),
}


def kube_of(api: ApiClient, more: Mapping[str, Place] | None = None) -> Kube:
    """Return a client for tenancy's kinds. more: places of kinds whose version depends on the API server."""
    return Kube(api, MANAGER, {**PLACES, **(more or {})})
