"""How hosts join: what the bearer of a bootstrap token may do in the API, and the unit that approves certificates. Pure.

kubeadm's phase bootstrap-token would also make the controller manager approve a certificate of any node for any bearer. So its
objects are created here without that binding, and `components.control_plane.host.joining` approves instead. A host needs its
token only for minutes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cluster.files import Consumer
from cluster.spec import Cloud, Cluster
from components.control_plane import audit_log, paths
from components.control_plane.objects import Object, cluster_role, cluster_role_binding, group, user
from components.control_plane.service_unit import Unit, follower

USER = "menagerie:node-join-approver"
NAME = "node-join-approver"
TOKENS = "system:bootstrappers:kubeadm:default-node-token"
"""The group that kubeadm binds its roles to. It lets a joining host read kubeadm's configuration."""
REGION = "system:bootstrappers:menagerie:region"
"""The group of the region's token. All workers there can read that token, so it proves no name."""
_SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
_CERTIFICATES = "certificates.k8s.io"
_OF_KUBERNETES = "system:certificates.k8s.io:certificatesigningrequests"


def credentials(cluster: Cluster) -> dict[str, str]:
    """Return the approver's credentials: name -> file.

    On Azure it queries the cloud with the identity of API servers, which the settings of audit logs name.
    """
    queries_azure = cluster.spec.cloud_workers and cluster.spec.control_plane.cloud is Cloud.AZURE
    return {
        "kubeconfig": f"{paths.KUBERNETES}/{NAME}.conf",
        **({audit_log.SECRET: audit_log.PATH} if queries_azure else {}),
    }


def group_of(host: str) -> str:
    """Return the group of a token for one host.

    Kubernetes accepts ``system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]``, and host names are DNS labels.
    """
    return f"system:bootstrappers:menagerie:node:{host}"


def groups(own: str) -> str:
    """Return `auth-extra-groups` of a token."""
    return f"{TOKENS},{own}"


def unit(cluster: Cluster) -> Unit:
    """Return the approver's unit."""
    approver = follower(
        NAME,
        "joining",
        NAME,
        "Approves the client certificates of hosts that join",
        "reference/access-authn-authz/kubelet-tls-bootstrapping/",
    )
    return replace(approver, credentials=tuple(credentials(cluster).items()))


def consumer(cluster: Cluster) -> Consumer:
    """Return what it follows."""
    return Consumer(f"{NAME}.service", tuple(credentials(cluster).values()))


def objects() -> Sequence[Object]:
    """Return the objects. They have kubeadm's names, so they replace the ones that kubeadm made in earlier releases."""
    reads = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]
    return (
        cluster_role_binding("kubeadm:kubelet-bootstrap", "system:node-bootstrapper", group(TOKENS)),
        cluster_role("kubeadm:get-nodes", reads),
        cluster_role_binding("kubeadm:get-nodes", "kubeadm:get-nodes", group(TOKENS)),
        # A kubelet may renew its own certificate and no other.
        cluster_role_binding(
            "kubeadm:node-autoapprove-certificate-rotation", f"{_OF_KUBERNETES}:selfnodeclient", group("system:nodes")
        ),
        cluster_role(USER, [*_approves(), *reads]),
        cluster_role_binding(USER, USER, user(USER)),
    )


def _approves() -> list[Object]:
    requests = "certificatesigningrequests"
    return [
        {"apiGroups": [_CERTIFICATES], "resources": [requests], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [_CERTIFICATES], "resources": [f"{requests}/approval"], "verbs": ["update"]},
        {"apiGroups": [_CERTIFICATES], "resources": ["signers"], "resourceNames": [_SIGNER], "verbs": ["approve"]},
    ]
