"""kubeadm's configuration, for its phases on the API-server hosts and for `kubeadm join`.

`OWN_ADDRESS` is a placeholder that each host replaces with its own address at boot. The KubeletConfiguration applies to all
nodes; a role may patch it for one host.
"""

from __future__ import annotations

from typing import Any

import yaml

from cluster.spec import Cluster
from cluster.tls import CIPHER_SUITES
from components.control_plane import paths
from components.control_plane.kube_apiserver import service_account_issuer
from components.control_plane.ports import API_PORT
from components.control_plane.service_unit import PYTHON_PATH, Unit, python
from etcd.members import client_urls
from network.addresses import AddressPlan

OWN_ADDRESS = "@OWN_ADDRESS@"
API_VERSION = "kubeadm.k8s.io/v1beta4"


def unit() -> Unit:
    """Return the unit that runs kubeadm's phases at boot."""
    return Unit(
        name="kubeadm-phases.service",
        description="Certificates and kubeconfigs of this host, by kubeadm's phases",
        documentation="https://kubernetes.io/docs/reference/setup-tools/kubeadm/kubeadm-init-phase/",
        words=python("phases"),
        type="oneshot",
        after=(),
        settings=(PYTHON_PATH, "RuntimeDirectory=menagerie", "RuntimeDirectoryPreserve=yes"),
        writable=(paths.KUBERNETES,),
    )


def render(cluster: Cluster, plan: AddressPlan) -> str:
    """Return kubeadm's configuration file, with one YAML document for each kind."""
    documents = (
        init_configuration(),
        cluster_configuration(cluster, plan),
        kubelet_configuration(cluster, plan),
        kube_proxy_configuration(cluster),
    )
    return yaml.safe_dump_all(documents, width=120)


def init_configuration() -> dict[str, Any]:
    """Return the InitConfiguration: the part for one host."""
    return {
        "apiVersion": API_VERSION,
        "kind": "InitConfiguration",
        "localAPIEndpoint": {"advertiseAddress": OWN_ADDRESS, "bindPort": API_PORT},
        # Without an entry kubeadm creates a token that is valid for a day. Workers get theirs from the operator.
        "bootstrapTokens": [
            {"ttl": "1m0s", "description": "of no use: made by kubeadm at a control-plane host's boot"}
        ],
        # No container runtime runs here. Without this, kubeadm looks for a socket and fails.
        "nodeRegistration": {"criSocket": "unix:///run/containerd/containerd.sock"},
    }


def cluster_configuration(cluster: Cluster, plan: AddressPlan) -> dict[str, Any]:
    """Return the ClusterConfiguration, stored in kube-system/kubeadm-config."""
    network = cluster.spec.network
    return {
        "apiVersion": API_VERSION,
        "kind": "ClusterConfiguration",
        "clusterName": cluster.name,
        "kubernetesVersion": f"v{cluster.spec.kubernetes.version}",
        "controlPlaneEndpoint": f"{plan.endpoint}:{API_PORT}",
        "certificatesDir": paths.PKI,
        "encryptionAlgorithm": "ECDSA-P256",
        "imageRepository": "registry.k8s.io",
        "networking": {
            "podSubnet": str(network.pods),
            "serviceSubnet": str(network.services),
            "dnsDomain": network.domain,
        },
        "etcd": {
            "external": {
                "endpoints": list(client_urls(cluster, "main", plan)),
                "caFile": paths.ETCD_CA,
                "certFile": paths.ETCD_CERTIFICATE,
                "keyFile": paths.ETCD_KEY,
            }
        },
        "apiServer": {"certSANs": names(cluster, plan)},
        # See components/control_plane/dns.py.
        "dns": {"disabled": True},
    }


def names(cluster: Cluster, plan: AddressPlan) -> list[str]:
    """Return the names and addresses in the API servers' certificates."""
    issuer_host = service_account_issuer(cluster).removeprefix("https://")
    public = cluster.spec.control_plane.public
    return [
        plan.endpoint,
        *([public.name] if public else ()),
        *(str(address) for address in plan.balancers if str(address) != plan.endpoint),
        str(plan.service_ip),
        "127.0.0.1",
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        issuer_host,
    ]


def kubelet_configuration(cluster: Cluster, plan: AddressPlan) -> dict[str, Any]:
    """Return the KubeletConfiguration of every node, stored in kube-system/kubelet-config: CIS 4.2."""
    network = cluster.spec.network
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True, "cacheTTL": "2m0s"},
            "x509": {"clientCAFile": f"{paths.PKI}/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "readOnlyPort": 0,
        "streamingConnectionIdleTimeout": "5m0s",
        "makeIPTablesUtilChains": True,
        "eventRecordQPS": 50,
        "eventBurst": 100,
        "serverTLSBootstrap": True,
        "rotateCertificates": True,
        "tlsMinVersion": "VersionTLS12",
        "tlsCipherSuites": list(CIPHER_SUITES),
        # Threads count too: a training process with its data loaders has thousands.
        "podPidsLimit": 32768,
        "seccompDefault": True,
        # The kubelet refuses to start if vm.overcommit_memory and kernel.panic* do not have the values that it needs.
        "protectKernelDefaults": True,
        # A pull of 17 GB must not block all others; the disk can unpack a few at a time.
        "serializeImagePulls": False,
        "maxParallelImagePulls": 4,
        "maxPods": network.max_pods,
        "clusterDNS": [str(plan.dns_ip)],
        "clusterDomain": network.domain,
        "cgroupDriver": "systemd",
        # kubeadm would copy the setting of the API-server host, which does not apply to nodes.
        "resolvConf": "/etc/resolv.conf",
    }


def kube_proxy_configuration(cluster: Cluster) -> dict[str, Any]:
    """Return the KubeProxyConfiguration, stored in kube-system/kube-proxy: nftables mode, CIS 4.3.1."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clusterCIDR": str(cluster.spec.network.pods),
        "metricsBindAddress": "127.0.0.1:10249",
        # Zeros keep the size of the connection table that the host's sysctl set: no single number fits all nodes,
        # and since 1.36 kube-proxy caps its own at 1,048,576.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }
