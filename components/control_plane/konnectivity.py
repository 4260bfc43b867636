"""konnectivity, the API server's way to nodes and pods: the server's unit and flags, and the agent on every node."""

from __future__ import annotations

from cluster.files import Consumer
from cluster.images import AGENT as AGENT_IMAGE
from cluster.spec import Cluster
from cluster.tls import CIPHER_SUITES
from components.control_plane import paths
from components.control_plane.flags import Flags
from components.control_plane.images import image
from components.control_plane.objects import Object, cluster_role_binding, user
from components.control_plane.ports import KONNECTIVITY_HEALTH_PORT, KONNECTIVITY_PORT
from components.control_plane.service_unit import CREDENTIALS, Unit, command, kubeconfig
from network.addresses import AddressPlan

NAME, ACCOUNT = "konnectivity-server", "konnectivity"
AUDIENCE = "system:konnectivity-server"
USER = "system:konnectivity-server"
AGENT = "konnectivity-agent"
_CERTIFICATE, _KEY = f"{paths.PKI}/apiserver.crt", f"{paths.PKI}/apiserver.key"
# Any unprivileged UID works; this is "nonroot" of the distroless images.
_NONROOT = 65532
_TOKEN_FOLDER = "/var/run/secrets/konnectivity"


def unit(cluster: Cluster) -> Unit:
    """Return the server's unit."""
    return Unit(
        name=f"{NAME}.service",
        description="konnectivity server: the API server's way to nodes and pods",
        documentation="https://kubernetes.io/docs/tasks/extend-kubernetes/setup-konnectivity/",
        words=command("konnectivity-server", flags(cluster, CREDENTIALS)),
        user=ACCOUNT,
        credentials=(
            ("kubeconfig", kubeconfig(NAME)),
            ("apiserver.crt", _CERTIFICATE),
            ("apiserver.key", _KEY),
        ),
        # The API server is in this group, so it may use the socket.
        settings=("RuntimeDirectory=konnectivity-server", "RuntimeDirectoryMode=0750"),
    )


def consumer() -> Consumer:
    """Return what the server follows."""
    return Consumer(f"{NAME}.service", (kubeconfig(NAME), _CERTIFICATE, _KEY))


def flags(cluster: Cluster, credentials: str) -> Flags:
    """Return the flags of konnectivity's server. credentials: the folder of its certificate, key and kubeconfig."""
    return {
        "mode": "grpc",
        "uds-name": paths.KONNECTIVITY_SOCKET,
        "server-port": "0",
        "agent-port": str(KONNECTIVITY_PORT),
        "admin-bind-address": "127.0.0.1",
        "health-bind-address": "127.0.0.1",
        "cluster-cert": f"{credentials}/apiserver.crt",
        "cluster-key": f"{credentials}/apiserver.key",
        "cipher-suites": ",".join(CIPHER_SUITES),
        "server-count": str(cluster.spec.control_plane.api_servers),
        # First the agent on the target node, then any agent, so that a node without one stays reachable.
        "proxy-strategies": "destHost,default",
        "kubeconfig": f"{credentials}/kubeconfig",
        "authentication-audience": AUDIENCE,
        "agent-namespace": "kube-system",
        "agent-service-account": "konnectivity-agent",
        # A tunnel through NAT must not look idle: Azure drops a flow after 4 minutes.
        "keepalive-time": "1m",
        "v": "1",
    }


def objects(cluster: Cluster, plan: AddressPlan) -> tuple[Object, ...]:
    """Return the server's rights, and the agent."""
    return (
        cluster_role_binding("menagerie:konnectivity-server", "system:auth-delegator", user(USER)),
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": AGENT, "namespace": "kube-system"},
            "automountServiceAccountToken": False,
        },
        agent(cluster, plan),
    )


def agent(cluster: Cluster, plan: AddressPlan) -> Object:
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
                        {"serviceAccountToken": {"path": "token", "audience": AUDIENCE}},
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
