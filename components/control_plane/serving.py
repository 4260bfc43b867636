"""Which names and addresses kubelets' serving certificates may hold; the unit that approves requests, and what it may do. Pure.

`components.control_plane.host.claims` says how addresses are bound to nodes. Only operators may write `HOSTS`
(`operations/serving.py`), and only the approver may write `WORKERS`.
"""

from __future__ import annotations

from typing import Any

from cluster.layout import KINDS
from cluster.spec import Cluster
from cluster.subnets import worker_ranges
from components.control_plane import kubeadm
from components.control_plane.host.claims import HOSTS, WORKERS
from components.control_plane.objects import Object, cluster_role, cluster_role_binding, role, role_binding, user
from components.control_plane.service_unit import Unit, follower
from network.addresses import AddressPlan

NAME, _ACCOUNT = "kubelet-csr-approver", "csr-approver"
USER = "menagerie:kubelet-csr-approver"
NAMESPACE = "menagerie-serving"


def settings(cluster: Cluster, plan: AddressPlan) -> dict[str, Any]:
    """Return the approver's settings.

    names, kinds, zones: names of the control plane that no node may have: full names, names followed by a number, and
    suffixes. workers: the ranges of workers in the region.
    """
    spec = cluster.spec
    return {
        "names": kubeadm.names(cluster, plan),
        "kinds": list(KINDS),
        "zones": [*([plan.zone] if plan.zone else []), spec.network.domain],
        "workers": [str(network) for network in (worker_ranges(spec) if spec.cloud_workers else ())],
    }


def unit() -> Unit:
    """Return the approver's unit."""
    return follower(
        NAME,
        "approver",
        _ACCOUNT,
        "Approves the serving certificates of kubelets",
        "reference/access-authn-authz/kubelet-tls-bootstrapping/",
    )


def objects() -> tuple[Object, ...]:
    """Return a separate namespace, and the approver's rights. In a shared namespace, rights to ConfigMaps would reach further."""
    group = "certificates.k8s.io"
    rules = [
        {"apiGroups": [group], "resources": ["certificatesigningrequests"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [group], "resources": ["certificatesigningrequests/approval"], "verbs": ["update"]},
        {
            "apiGroups": [group],
            "resources": ["signers"],
            "resourceNames": ["kubernetes.io/kubelet-serving"],
            "verbs": ["approve"],
        },
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]},
    ]
    own = [
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [HOSTS, WORKERS], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [WORKERS], "verbs": ["update"]},
    ]
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return (
        cluster_role(USER, rules),
        cluster_role_binding(USER, USER, user(USER)),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}},
        *(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE}}
            for name in (HOSTS, WORKERS)
        ),
        role(USER, own, NAMESPACE),
        role_binding(USER, USER, user(USER), NAMESPACE),
    )
