"""kube-apiserver's flags for the etcds of its cluster, and its checks of them."""

from __future__ import annotations

from cluster.spec import Cluster, RoleName
from etcd.members import client_urls
from network.addresses import AddressPlan

# group/resource of each etcd but main; the core group has no name. Kubernetes stores nothing else
# at these etcds, whatever their prefix.
RESOURCES: dict[RoleName, str] = {"events": "/events"}


def flags(cluster: Cluster, plan: AddressPlan) -> list[str]:
    """The --etcd-* flags but those that name its certificates, each --name=value without quoting.

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
        "--etcd-compaction-interval=5m0s",
        "--etcd-healthcheck-timeout=10s",
        "--etcd-readycheck-timeout=5s",
    ]


def ready_checks(role: RoleName) -> tuple[str, str]:
    """Names of the two checks that /readyz makes of an etcd.

    Those of overrides are numbered in the order of --etcd-servers-overrides, from Kubernetes 1.34 on.
    """
    if role == "main":
        return "etcd", "etcd-readiness"
    index = list(RESOURCES).index(role)
    return f"etcd-override-{index}", f"etcd-override-readiness-{index}"


def probe_path() -> str:
    """What tells whether an API server can serve, for load balancers and for who waits for it.

    A dead events etcd leaves healthy API servers in place: events may be lost without harm.
    """
    return "/readyz?" + "&".join(f"exclude={check}" for role in RESOURCES for check in ready_checks(role))
