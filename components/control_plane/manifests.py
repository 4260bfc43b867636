"""Objects that the cluster has from its first minute, in addition to those of kubeadm's phases.

Every boot of an API-server host applies them server-side, so removed ones come back.
"""

from __future__ import annotations

import json

from cluster.images import AGENT as AGENT_IMAGE
from cluster.images import PAUSE
from cluster.spec import Cluster
from components.control_plane import (
    admission,
    csi,
    dns,
    gangs,
    gpu,
    joining,
    nodes,
    preflight,
    refreshing,
    reports,
    serving,
)
from components.control_plane.flags import KONNECTIVITY_AUDIENCE, KONNECTIVITY_USER
from components.control_plane.images import image
from components.control_plane.objects import (
    Object,
    applied,
    cluster_role,
    cluster_role_binding,
    group,
    role,
    role_binding,
    user,
)
from components.control_plane.ports import KONNECTIVITY_HEALTH_PORT, KONNECTIVITY_PORT
from components.scheduling import balloons, priorities
from network.addresses import AddressPlan

TOKENS_USER = "menagerie:join-tokens"
AGENT = "konnectivity-agent"
# Any unprivileged UID works; this is "nonroot" of the distroless images.
_NONROOT = 65532
_TOKEN_FOLDER = "/var/run/secrets/konnectivity"


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
        *(_join_tokens() if cluster.spec.cloud_workers else ()),
        cluster_role_binding("menagerie:konnectivity-server", "system:auth-delegator", user(KONNECTIVITY_USER)),
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": AGENT, "namespace": "kube-system"},
            "automountServiceAccountToken": False,
        },
        konnectivity_agent(cluster, plan),
        *dns.objects(cluster, plan),
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


def _join_tokens() -> tuple[Object, ...]:
    # RBAC can't restrict names that don't exist yet, or types of Secrets.
    rules = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["create", "get", "patch"]}]
    return role(TOKENS_USER, rules), role_binding(TOKENS_USER, TOKENS_USER, user(TOKENS_USER))


def konnectivity_agent(cluster: Cluster, plan: AddressPlan) -> Object:
    """Return the DaemonSet that runs an agent on every node. The agent opens tunnels to every API-server host.

    It is on the host's network: it must work before the pod network does, and it can still reach pods.
    """
    labels = {"k8s-app": AGENT}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": AGENT, "namespace": "kube-system", "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
            "template": {"metadata": {"labels": labels}, "spec": _agent_pod(cluster, plan)},
        },
    }


def _agent_pod(cluster: Cluster, plan: AddressPlan) -> Object:
    return {
        "serviceAccountName": AGENT,
        "automountServiceAccountToken": False,
        "priorityClassName": "system-node-critical",
        "hostNetwork": True,
        "dnsPolicy": "Default",
        "tolerations": [{"operator": "Exists"}],
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _NONROOT,
            "runAsGroup": _NONROOT,
            "fsGroup": _NONROOT,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_agent_container(cluster, plan)],
        "volumes": [
            {
                "name": "identity",
                "projected": {
                    "sources": [
                        {"serviceAccountToken": {"path": "token", "audience": KONNECTIVITY_AUDIENCE}},
                        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                    ]
                },
            }
        ],
    }


def _agent_container(cluster: Cluster, plan: AddressPlan) -> Object:
    health = {"host": "127.0.0.1", "port": KONNECTIVITY_HEALTH_PORT}
    return {
        "name": AGENT,
        "image": image(cluster, AGENT_IMAGE),
        "args": [
            f"--ca-cert={_TOKEN_FOLDER}/ca.crt",
            f"--service-account-token-path={_TOKEN_FOLDER}/token",
            f"--proxy-server-host={plan.endpoint}",
            f"--proxy-server-port={KONNECTIVITY_PORT}",
            "--agent-identifiers=ipv4=$(NODE_ADDRESS)",
            "--health-server-host=127.0.0.1",
            f"--health-server-port={KONNECTIVITY_HEALTH_PORT}",
            # How often an agent without a connection to each server dials again; the load balancer picks the server.
            "--sync-interval=3s",
            "--sync-interval-cap=30s",
            "--keepalive-time=1m",
            "--v=1",
        ],
        "env": [{"name": "NODE_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}],
        "livenessProbe": {
            "httpGet": {"path": "/healthz", **health},
            "initialDelaySeconds": 10,
            "periodSeconds": 30,
            "timeoutSeconds": 5,
            "failureThreshold": 4,
        },
        "readinessProbe": {"httpGet": {"path": "/readyz", **health}, "periodSeconds": 5, "timeoutSeconds": 5},
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "identity", "mountPath": _TOKEN_FOLDER, "readOnly": True}],
    }
