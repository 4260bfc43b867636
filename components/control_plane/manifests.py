"""Objects that the cluster has from its first minute, in addition to those of kubeadm's phases.

Every boot of an API-server host applies them server-side, so removed ones come back.
"""

from __future__ import annotations

import json

from cluster.images import PAUSE
from cluster.spec import Cluster
from components.control_plane import (
    admission,
    csi,
    dns,
    gangs,
    gpu,
    join_tokens,
    joining,
    konnectivity,
    metrics,
    metrics_keys,
    metrics_relay,
    nodes,
    preflight,
    refreshing,
    reports,
    scraper,
    serving,
)
from components.control_plane.images import image
from components.control_plane.objects import (
    Object,
    applied,
    cluster_role,
    cluster_role_binding,
    group,
    user,
)
from components.control_plane.service_unit import PYTHON_PATH, Unit, python
from components.scheduling import balloons, priorities
from network.addresses import AddressPlan


def unit() -> Unit:
    """Return the unit of cluster-bootstrap, which applies them."""
    return Unit(
        name="cluster-bootstrap.service",
        description="Cluster configuration, add-ons and RBAC; changes nothing that is already so",
        documentation="https://kubernetes.io/docs/reference/setup-tools/kubeadm/kubeadm-init-phase/",
        words=python("bootstrap"),
        type="oneshot",
        after=("kube-apiserver.service",),
        settings=(PYTHON_PATH, "RuntimeDirectory=cluster-bootstrap", "RuntimeDirectoryMode=0700"),
    )


def render(cluster: Cluster, plan: AddressPlan) -> str:
    """Return a JSON list of {path, force, object}: the object's path in the API, whether our fields win, and the object.

    For ConfigMaps they don't: what people put there (a Corefile with their own zones) stays.
    """
    entries = [applied(thing, yields=thing["kind"] == "ConfigMap") for thing in objects(cluster, plan)]
    return json.dumps(entries, separators=(",", ":"), sort_keys=True) + "\n"


def objects(cluster: Cluster, plan: AddressPlan) -> tuple[Object, ...]:
    """Return all objects, in the order in which they are applied."""
    return (
        cluster_role_binding("kubeadm:cluster-admins", "cluster-admin", group("kubeadm:cluster-admins")),
        # Lets API servers call kubelets. Since 1.36 this is part of kubeadm's phase bootstrap-token, which does not run here
        # (`components.control_plane.joining`).
        cluster_role_binding(
            "kubeadm:apiserver-kubelet-client", "system:kubelet-api-admin", user("kube-apiserver-kubelet-client")
        ),
        *priorities.objects(),
        *admission.objects(cluster),
        *nodes.objects(),
        *_flannel(),
        *serving.objects(),
        *joining.objects(),
        *refreshing.objects(),
        *(preflight.objects() if cluster.spec.checked_workers else ()),
        *gangs.objects(cluster),
        *reports.objects(),
        *(join_tokens.objects() if cluster.spec.cloud_workers else ()),
        *konnectivity.objects(cluster, plan),
        *dns.objects(cluster, plan),
        *scraper.objects(),
        *metrics_keys.objects(),
        *(metrics_relay.objects() if metrics_relay.is_on(cluster) else ()),
        *metrics.objects(cluster),
        *csi.objects(cluster),
        *gpu.objects(cluster),
        *balloons.objects(cluster, image(cluster, PAUSE)),
    )


def _flannel() -> tuple[Object, ...]:
    # flanneld has the identity of its node, and the node authorizer shows it only its own Node. It needs the subnets and
    # MACs that other nodes wrote into their annotations.
    rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}]
    return (
        cluster_role("menagerie:flannel", rules),
        cluster_role_binding("menagerie:flannel", "menagerie:flannel", group("system:nodes")),
    )
