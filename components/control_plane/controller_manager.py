"""kube-controller-manager: its unit, its flags, and the keys that it follows.

It reads at its start what it publishes in every namespace as kube-root-ca.crt.
"""

from __future__ import annotations

from cluster.files import Consumer
from cluster.spec import Cluster
from components.control_plane import gangs, paths, sizing
from components.control_plane.flags import Flags, elected
from components.control_plane.service_unit import Unit, command, kubeconfig

_UNIT = "kube-controller-manager.service"


def unit(cluster: Cluster) -> Unit:
    """Return its unit."""
    return Unit(
        name=_UNIT,
        description="Kubernetes controller manager",
        words=command("kube-controller-manager", flags(cluster)),
        hidden=(
            f"{paths.PKI}/front-proxy-ca.key",
            paths.ETCD_KEY,
            f"{paths.KUBERNETES}/encryption-config.yaml",
        ),
    )


def consumer() -> Consumer:
    """Return what it follows."""
    keys = (f"{paths.PKI}/sa.key", f"{paths.PKI}/ca.crt", paths.SIGNING_CA, paths.SERVING_SIGNING_CA)
    return Consumer(_UNIT, (kubeconfig("controller-manager"), *keys))


def flags(cluster: Cluster) -> Flags:
    """Return the flags of kube-controller-manager: CIS 1.3."""
    network = cluster.spec.network
    return {
        **elected(kubeconfig("controller-manager")),
        "controllers": "*,bootstrapsigner,tokencleaner",
        "use-service-account-credentials": "true",
        "cluster-name": cluster.name,
        "allocate-node-cidrs": "true",
        "cluster-cidr": str(network.pods),
        "node-cidr-mask-size": str(network.node_prefix),
        "service-cluster-ip-range": str(network.services),
        "client-ca-file": f"{paths.PKI}/ca.crt",
        "requestheader-client-ca-file": f"{paths.PKI}/front-proxy-ca.crt",
        "root-ca-file": f"{paths.PKI}/ca.crt",
        "service-account-private-key-file": f"{paths.PKI}/sa.key",
        **_signers(),
        "feature-gates": ",".join(
            ["RotateKubeletServerCertificate=true", *gangs.flags(cluster, "kube-controller-manager").values()]
        ),
        # Finished pods of batch jobs stay readable, but only so many: they take up room in etcd main.
        "terminated-pod-gc-threshold": "5000",
        **sizing.flags("kube-controller-manager", sizing.most_nodes(cluster)),
    }


def _signers() -> Flags:
    """Return the flags that assign an authority to each signer.

    None is for `kubernetes.io/legacy-unknown`, which the API no longer assigns to requests. The flag for all signers excludes
    the flags for single ones (cmd/kube-controller-manager, csrsigningcontroller options).
    """
    of_clients = (paths.SIGNING_CA, f"{paths.PKI}/ca.key")
    signers = {
        "kubelet-client": of_clients,
        "kube-apiserver-client": of_clients,
        "kubelet-serving": (paths.SERVING_SIGNING_CA, paths.SERVING_KEY),
    }
    files = {
        f"cluster-signing-{signer}-{kind}-file": path
        for signer, pair in signers.items()
        for kind, path in zip(("cert", "key"), pair, strict=True)
    }
    return files
