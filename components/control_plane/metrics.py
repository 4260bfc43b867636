"""metrics-server: what `kubectl top` and autoscalers read. It asks every kubelet for the use of CPU and memory each 15 s. Pure.

Differences from upstream's manifests: API servers verify its certificate (upstream has insecureSkipTLSVerify), it verifies those of
kubelets, two replicas where there are two hosts, and resources by the cluster's size. `metrics_keys` gives both sides their keys.
"""

from __future__ import annotations

from cluster.images import METRICS_SERVER
from cluster.spec import Cluster
from cluster.tls import CIPHER_SUITES
from components.control_plane import sizing, spreading
from components.control_plane.host.metrics_keys import API_SERVICE, AUTHORITIES, NAMESPACE, SECRET
from components.control_plane.images import image
from components.control_plane.objects import (
    Object,
    cluster_role,
    cluster_role_binding,
    role_binding,
)
from components.control_plane.ports import METRICS_SERVER_PORT

NAME = "metrics-server"
GROUP, VERSION = "metrics.k8s.io", "v1beta1"
HOST = f"{NAME}.{NAMESPACE}.svc"
"""The name by which API servers verify its certificate (kube-aggregator, pkg/apiserver/handler_proxy.go)."""
EVERY_S = 15
"""It has metrics of a node after two answers of its kubelet."""
_LABELS = {"k8s-app": NAME}
_SERVING, _KUBELETS = "/etc/metrics-server/serving", "/etc/metrics-server/kubelets"
# Upstream's image runs as this user, which is "nobody".
_NOBODY = 65534


def replicas(cluster: Cluster) -> int:
    """Return the number of its pods: two, if they find two hosts."""
    return spreading.REPLICAS if spreading.hosts(cluster) >= spreading.REPLICAS else 1


def objects(cluster: Cluster) -> tuple[Object, ...]:
    """Return its rights, its pods, the Service, and the part of the API that it serves, except for keys."""
    return (
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": NAMESPACE}},
        *_rights(),
        _deployment(cluster),
        spreading.budget(NAME, NAMESPACE, _LABELS),
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": _LABELS},
            "spec": {
                "selector": _LABELS,
                "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": METRICS_SERVER_PORT}],
            },
        },
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": API_SERVICE},
            "spec": {
                "service": {"name": NAME, "namespace": NAMESPACE, "port": 443},
                "group": GROUP,
                "version": VERSION,
                # Also where an operator's own metrics-server had set it.
                "insecureSkipTLSVerify": False,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
            },
        },
    )


def _rights() -> tuple[Object, ...]:
    """Return what it may do, and who may read metrics: everybody who may view pods."""
    account = {"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}
    own: list[Object] = [
        {"apiGroups": [""], "resources": ["nodes/metrics"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get", "list", "watch"]},
    ]
    readers: list[Object] = [
        {"apiGroups": [GROUP], "resources": ["nodes", "pods"], "verbs": ["get", "list", "watch"]},
    ]
    reader = cluster_role("system:aggregated-metrics-reader", readers)
    reader["metadata"]["labels"] = {
        f"rbac.authorization.k8s.io/aggregate-to-{name}": "true" for name in ("view", "edit", "admin")
    }
    return (
        reader,
        cluster_role(f"system:{NAME}", own),
        cluster_role_binding(f"system:{NAME}", f"system:{NAME}", account),
        # To ask API servers who sends a request, and whether they may.
        cluster_role_binding(f"menagerie:{NAME}-delegator", "system:auth-delegator", account),
        role_binding(f"menagerie:{NAME}", "extension-apiserver-authentication-reader", account, NAMESPACE),
    )


def _deployment(cluster: Cluster) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": _LABELS},
        "spec": {
            "replicas": replicas(cluster),
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            "selector": {"matchLabels": _LABELS},
            "template": {"metadata": {"labels": _LABELS}, "spec": _pod(cluster)},
        },
    }


def _pod(cluster: Cluster) -> Object:
    return {
        "serviceAccountName": NAME,
        "priorityClassName": "system-cluster-critical",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}, *spreading.leave_dead_hosts()],
        "affinity": spreading.apart(cluster, _LABELS),
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _NOBODY,
            "runAsGroup": _NOBODY,
            "fsGroup": _NOBODY,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(cluster)],
        # With `items`, no container starts before there are keys.
        "volumes": [
            {
                "name": "serving",
                "secret": {
                    "secretName": SECRET,
                    "defaultMode": 0o440,
                    "items": [{"key": key, "path": key} for key in ("tls.crt", "tls.key")],
                },
            },
            {
                "name": "kubelets",
                "configMap": {"name": AUTHORITIES, "items": [{"key": "ca.crt", "path": "ca.crt"}]},
            },
        ],
    }


def _container(cluster: Cluster) -> Object:
    room = sizing.metrics_room(sizing.most_nodes(cluster))
    port = {"port": METRICS_SERVER_PORT, "scheme": "HTTPS"}
    return {
        "name": NAME,
        "image": image(cluster, METRICS_SERVER),
        "args": list(arguments()),
        "ports": [{"name": "https", "containerPort": METRICS_SERVER_PORT, "protocol": "TCP"}],
        "resources": {
            "requests": {"cpu": f"{room.cpu_m}m", "memory": f"{room.memory_mib}Mi"},
            "limits": {"memory": f"{2 * room.memory_mib}Mi"},
        },
        # It is ready after two answers of kubelets, and alive as long as it asks them in time.
        "readinessProbe": {"httpGet": {"path": "/readyz", **port}, "periodSeconds": 2},
        "livenessProbe": {
            "httpGet": {"path": "/livez", **port},
            "initialDelaySeconds": 60,
            "periodSeconds": 10,
            "timeoutSeconds": 5,
            "failureThreshold": 3,
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "serving", "mountPath": _SERVING, "readOnly": True},
            {"name": "kubelets", "mountPath": _KUBELETS, "readOnly": True},
        ],
    }


def arguments() -> tuple[str, ...]:
    """Return the arguments of its program. It rereads all three files while it runs: both of its own within a minute (k8s.io/apiserver,
    dynamiccertificates), authorities within five (client-go 0.36, ClientsAllowCARotation)."""
    return (
        f"--secure-port={METRICS_SERVER_PORT}",
        f"--tls-cert-file={_SERVING}/tls.crt",
        f"--tls-private-key-file={_SERVING}/tls.key",
        "--tls-min-version=VersionTLS12",
        f"--tls-cipher-suites={','.join(CIPHER_SUITES)}",
        f"--kubelet-certificate-authority={_KUBELETS}/ca.crt",
        # Names of nodes need not resolve anywhere.
        "--kubelet-preferred-address-types=InternalIP",
        "--kubelet-use-node-status-port",
        f"--metric-resolution={EVERY_S}s",
        "--profiling=false",
    )
