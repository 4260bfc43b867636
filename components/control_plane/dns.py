"""CoreDNS, as kubeadm would install it, except for four things that kubeadm can't do.

kubeadm's phase rejects a CoreDNS newer than its own when it runs a second time ("start version not supported"). It always
takes the tenth address of the service range. It leaves CoreDNS on a dead node for as long as the jobs there. And it only
prefers to spread the replicas: the first node to join a new cluster keeps all of them, so the cluster has no DNS while that
node is down.
"""

from __future__ import annotations

from cluster.images import COREDNS
from cluster.spec import Cluster
from components.control_plane.images import image
from components.control_plane.objects import Object, cluster_role, cluster_role_binding
from components.control_plane.spreading import REPLICAS, apart, budget, leave_dead_hosts
from network.addresses import AddressPlan

NAME = "coredns"
NAMESPACE = "kube-system"
_LABELS = {"k8s-app": "kube-dns"}

_COREFILE = """\
.:53 {{
    errors
    health {{
       lameduck 5s
    }}
    ready
    kubernetes {domain} in-addr.arpa ip6.arpa {{
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }}
    prometheus :9153
    forward . /etc/resolv.conf {{
       max_concurrent 1000
    }}
    cache 30
    loop
    reload
    loadbalance
}}
"""


def objects(cluster: Cluster, plan: AddressPlan) -> tuple[Object, ...]:
    """Return CoreDNS: its rights, its configuration, its pods and the Service at the cluster's DNS address."""
    rules: list[Object] = [
        {"apiGroups": [""], "resources": ["services", "pods", "namespaces"], "verbs": ["list", "watch"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
    ]
    account = {"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}
    return (
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": NAMESPACE}},
        cluster_role("system:coredns", rules),
        cluster_role_binding("system:coredns", "system:coredns", account),
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": NAME, "namespace": NAMESPACE},
            "data": {"Corefile": _COREFILE.format(domain=cluster.spec.network.domain)},
        },
        _deployment(cluster),
        budget(NAME, NAMESPACE, _LABELS),
        _service(plan),
    )


def _service(plan: AddressPlan) -> Object:
    ports = (("dns", "UDP", 53), ("dns-tcp", "TCP", 53), ("metrics", "TCP", 9153))
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kube-dns",
            "namespace": NAMESPACE,
            "labels": _LABELS | {"kubernetes.io/cluster-service": "true", "kubernetes.io/name": "CoreDNS"},
        },
        "spec": {
            "clusterIP": str(plan.dns_ip),
            "selector": _LABELS,
            "ports": [{"name": n, "protocol": p, "port": port, "targetPort": port} for n, p, port in ports],
        },
    }


def _deployment(cluster: Cluster) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": _LABELS},
        "spec": {
            "replicas": REPLICAS,
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
        "tolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}, *leave_dead_hosts()],
        "affinity": apart(cluster, _LABELS),
        "dnsPolicy": "Default",
        "containers": [_container(cluster)],
        "volumes": [
            {"name": "config", "configMap": {"name": NAME, "items": [{"key": "Corefile", "path": "Corefile"}]}}
        ],
    }


def _container(cluster: Cluster) -> Object:
    return {
        "name": NAME,
        "image": image(cluster, COREDNS),
        "args": ["-conf", "/etc/coredns/Corefile"],
        "resources": {"requests": {"cpu": "100m", "memory": "70Mi"}, "limits": {"memory": "512Mi"}},
        "ports": [
            {"name": "dns", "containerPort": 53, "protocol": "UDP"},
            {"name": "dns-tcp", "containerPort": 53, "protocol": "TCP"},
            {"name": "metrics", "containerPort": 9153, "protocol": "TCP"},
        ],
        "livenessProbe": {
            "httpGet": {"path": "/health", "port": 8080},
            "initialDelaySeconds": 60,
            "timeoutSeconds": 5,
            "failureThreshold": 5,
        },
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 5},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns", "readOnly": True}],
    }
