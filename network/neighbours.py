"""Sizes of the kernel's neighbour (ARP and NDP) tables.

Linux keeps at most gc_thresh3 neighbours, 1024 by default, for all its network namespaces together;
beyond that, new connections fail with "neighbour: arp_cache: neighbor table overflow!". OpenAI met
it at 1,000 nodes and set 80000, 90000, 100000.

Entries that flannel makes for VXLAN are permanent, and those do not count since Linux 5.0. What
counts is the largest network whose hosts speak to each other directly, and the pods on the host.
"""

from __future__ import annotations

from dataclasses import dataclass

from cluster.spec import Cloud, Cluster
from network.capacity import cloud_workers

FLOOR = 16_384
"""gc_thresh3 of Azure Kubernetes Service's nodes."""
CAP = 100_000
"""gc_thresh3 of OpenAI's cluster, the most that Azure allows."""

_GATEWAYS = 2  # A pair of routers, as racks commonly have.


@dataclass(frozen=True)
class Thresholds:
    """Entries: below 1 nothing is collected, above 2 collection is eager, above 3 entries are refused."""

    gc_thresh1: int
    gc_thresh2: int
    gc_thresh3: int


def domains(cluster: Cluster) -> dict[str, int]:
    """Layer-2 network -> hosts on it. The cloud's counts its pools at their largest."""
    etcd = cluster.spec.etcd
    load_balancer = 1
    cloud = cluster.spec.control_plane.api_servers + etcd.main.members + etcd.events.members + load_balancer
    sizes = {"cloud": cloud + cloud_workers(cluster)}
    for pool, host in cluster.host_list():
        rack = f"{cluster.spec.pools[pool].site}/{host.rack}"
        sizes[rack] = sizes.get(rack, 0) + 1
    return sizes


def needed(cluster: Cluster) -> int:
    """The most neighbours that a host of this cluster can have at one time."""
    return max(domains(cluster).values()) + cluster.spec.network.max_pods + _GATEWAYS


def thresholds(cluster: Cluster, *, in_cloud: bool = False) -> Thresholds:
    """Thresholds for the cluster's hosts: at sites, or those on the cloud side with `in_cloud`.

    gc_thresh3 is twice the need, since entries younger than 30 s cannot be collected and bursts
    overflow, in steps of `FLOOR` so that adding a host seldom changes the files of all others.
    gc_thresh1 and 2 are 0.8 and 0.9 of it. On AWS, gc_thresh1 is 0: addresses are soon given to
    other machines there, and a stale entry is worse than a lookup (kubernetes/kops#4533). What the
    spec sets is taken as it is.

    Raises ValueError when what the spec sets is out of order with the rest, or the need is above CAP.
    """
    chosen = cluster.spec.neighbours
    third = chosen.gc_thresh3 or _computed(cluster)
    second = third * 9 // 10 if chosen.gc_thresh2 is None else chosen.gc_thresh2
    first = chosen.gc_thresh1
    if first is None:
        reused = in_cloud and cluster.spec.control_plane.cloud is Cloud.AWS
        first = 0 if reused else min(third * 8 // 10, second)
    if not first <= second <= third:
        raise ValueError(
            f"neighbours: gc_thresh1 {first}, gc_thresh2 {second} and gc_thresh3 {third} must rise in this order; "
            "set all three, or leave them out"
        )
    return Thresholds(first, second, third)


def sysctl_text(chosen: Thresholds) -> str:
    """A file for /etc/sysctl.d with the thresholds for IPv4 and IPv6."""
    lines = [
        "# Neighbour tables, sized for this cluster. Global to the kernel: not settable in a container.",
        *(
            f"net.{family}.neigh.default.gc_thresh{number} = {value}"
            for family in ("ipv4", "ipv6")
            for number, value in enumerate((chosen.gc_thresh1, chosen.gc_thresh2, chosen.gc_thresh3), start=1)
        ),
    ]
    return "\n".join(lines) + "\n"


def _computed(cluster: Cluster) -> int:
    need = needed(cluster)
    if need > CAP:
        largest = max(domains(cluster), key=lambda name: domains(cluster)[name])
        raise ValueError(
            f"a host on {largest} can have {need} neighbours, above the {CAP} that are known to work; "
            "split that network, or set neighbours.gc_thresh3"
        )
    steps = -(-2 * need // FLOOR)
    return min(steps * FLOOR, CAP)
