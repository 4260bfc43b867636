"""kube-apiserver's flags for the etcds of its cluster, and what its load balancer must not probe."""

from __future__ import annotations

from cluster.spec import Cluster, RoleName
from etcd.members import client_urls
from network.addresses import AddressPlan

PKI_DIR = "/etc/kubernetes/pki"

# group/resource of each etcd but main; the core group has no name. Kubernetes stores nothing else
# at these etcds, whatever their prefix.
RESOURCES: dict[RoleName, str] = {"events": "/events"}


def flags(cluster: Cluster, plan: AddressPlan) -> list[str]:
    """The --etcd-* flags, each --name=value without quoting.

    Servers of one override are separated by ';', overrides by ','. A ';' inside a word means
    nothing to systemd and ends a command in a shell: quote there.

    The check timeouts are longer than Kubernetes' 2 s: a slow etcd is slow for all API servers, so
    taking them out of the load balancer or restarting them makes an outage of a delay
    (kubernetes/kubernetes#111290).
    """
    overrides = ",".join(
        f"{resource}#{';'.join(client_urls(cluster, role, plan))}" for role, resource in RESOURCES.items()
    )
    return [
        f"--etcd-servers={','.join(client_urls(cluster, 'main', plan))}",
        f"--etcd-servers-overrides={overrides}",
        f"--etcd-cafile={PKI_DIR}/etcd/ca.crt",
        f"--etcd-certfile={PKI_DIR}/apiserver-etcd-client.crt",
        f"--etcd-keyfile={PKI_DIR}/apiserver-etcd-client.key",
        "--etcd-compaction-interval=5m0s",
        "--etcd-healthcheck-timeout=10s",
        "--etcd-readycheck-timeout=5s",
    ]


def probe_exclusions(cluster: Cluster) -> tuple[str, ...]:
    """Names of the /readyz checks that the cluster's load balancer must exclude, so that a dead
    events etcd leaves healthy API servers in place. Kubernetes 1.34 and later adds two for each
    override; excluding "etcd" would drop the check of main as well."""
    return tuple(f"etcd-override-{kind}{index}" for index in range(len(RESOURCES)) for kind in ("", "readiness-"))
