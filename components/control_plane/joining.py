"""How hosts join: what bearers of bootstrap tokens may do in the API, and who approves their certificates. Pure.

kubeadm's phase bootstrap-token would also have the controller manager approve a certificate of any node for any bearer, so its
objects are made here, without that binding (`components.control_plane.host.joining` approves instead). A host needs its token for minutes.
"""

from __future__ import annotations

from collections.abc import Sequence

from cluster.spec import Cloud, Cluster
from components.control_plane import audit_log, paths
from components.control_plane.objects import Object, cluster_role, cluster_role_binding, group, user

USER = "menagerie:node-join-approver"
NAME = "node-join-approver"
TOKENS = "system:bootstrappers:kubeadm:default-node-token"
"""The group that kubeadm's own roles are given to: a joining host reads kubeadm's configuration by it."""
REGION = "system:bootstrappers:menagerie:region"
"""The group of the region's token, which all workers there can read: it proves no name."""
_SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
_CERTIFICATES = "certificates.k8s.io"
_OF_KUBERNETES = "system:certificates.k8s.io:certificatesigningrequests"


def credentials(cluster: Cluster) -> dict[str, str]:
    """Credential of the approver -> its file. On Azure it asks as the identity of API servers, which the settings of audit
    logs name."""
    asking = cluster.spec.cloud_workers and cluster.spec.control_plane.cloud is Cloud.AZURE
    return {
        "kubeconfig": f"{paths.KUBERNETES}/{NAME}.conf",
        **({audit_log.SECRET: audit_log.PATH} if asking else {}),
    }


def group_of(host: str) -> str:
    """The group of a token that lets in one host. Kubernetes takes ``system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]``, and
    names of hosts are labels of DNS."""
    return f"system:bootstrappers:menagerie:node:{host}"


def groups(own: str) -> str:
    """`auth-extra-groups` of a token."""
    return f"{TOKENS},{own}"


def objects() -> Sequence[Object]:
    """Under kubeadm's names, so that they take the place of what earlier releases had from kubeadm."""
    reads = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]
    return (
        cluster_role_binding("kubeadm:kubelet-bootstrap", "system:node-bootstrapper", group(TOKENS)),
        cluster_role("kubeadm:get-nodes", reads),
        cluster_role_binding("kubeadm:get-nodes", "kubeadm:get-nodes", group(TOKENS)),
        # A kubelet renews its own certificate, and no other.
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
