"""kube-apiserver's flags for the etcds of its cluster, and its health checks of them."""

from __future__ import annotations

from cluster.spec import Cluster, RoleName
from etcd.members import client_urls
from network.addresses import AddressPlan

# group/resource of each etcd except main; the core group has no name. Kubernetes stores nothing else in these etcds, whatever
# their prefix.
RESOURCES: dict[RoleName, str] = {"events": "/events"}


def flags(cluster: Cluster, plan: AddressPlan) -> list[str]:
    """Return the --etcd-* flags, except those for certificates, each as --name=value without quoting.

    Servers of one override are separated by ';', overrides by ','. systemd takes a ';' inside a word literally, but in a shell it
    ends a command: quote it there.

    The check timeouts are longer than Kubernetes' 2 s. A slow etcd is slow for all API servers, so removing them from the load
    balancer, or restarting them, would turn a delay into an outage (kubernetes/kubernetes#111290).
    """
    overrides = ",".join(
        f"{resource}#{';'.join(client_urls(cluster, role, plan))}" for role, resource in RESOURCES.items()
    )
    return [
        f"--etcd-servers={','.join(client_urls(cluster, 'main', plan))}",
        f"--etcd-servers-overrides={overrides}",
        "--etcd-compaction-interval=5m0s",
        "--etcd-healthcheck-timeout=10s",
        "--etcd-readycheck-timeout=5s",
    ]


def ready_checks(role: RoleName) -> tuple[str, str]:
    """Return the names of the two /readyz checks of an etcd.

    From Kubernetes 1.34 on, checks of overrides are numbered in the order of --etcd-servers-overrides.
    """
    if role == "main":
        return "etcd", "etcd-readiness"
    index = list(RESOURCES).index(role)
    return f"etcd-override-{index}", f"etcd-override-readiness-{index}"


def probe_path() -> str:
    """Return the path that tells load balancers, and programs that wait, whether an API server can serve.

    It ignores the events etcd: losing events does no harm, so API servers stay in service without it.
    """
    return "/readyz?" + "&".join(f"exclude={check}" for role in RESOURCES for check in ready_checks(role))
