"""Sizes of the kernel's neighbour tables (ARP and NDP). `cluster.neighbours` has the reasons and the required size."""

from __future__ import annotations

from dataclasses import dataclass

from cluster.neighbours import CAP, needed
from cluster.spec import Cloud, Cluster

FLOOR = 16_384
"""gc_thresh3 of Azure Kubernetes Service's nodes."""


@dataclass(frozen=True)
class Thresholds:
    """Numbers of entries. Below gc_thresh1 none is collected, above gc_thresh2 collection is aggressive, above gc_thresh3 new
    entries are refused."""

    gc_thresh1: int
    gc_thresh2: int
    gc_thresh3: int


def thresholds(cluster: Cluster, *, in_cloud: bool = False) -> Thresholds:
    """Return the thresholds for hosts of a checked cluster: at sites, or on the cloud side with `in_cloud`.

    gc_thresh3 is twice the required size, because entries younger than 30 s can't be collected and bursts overflow. It is
    rounded up to a multiple of `FLOOR`, so that adding a host seldom changes the files of all others. gc_thresh1 and gc_thresh2
    are 0.8 and 0.9 of it. On AWS, gc_thresh1 is 0: addresses are soon reused by other machines there, and a stale entry is worse
    than a lookup (kubernetes/kops#4533). Values in the spec are used unchanged.
    """
    chosen = cluster.spec.neighbours
    third = chosen.gc_thresh3 or min(-(-2 * needed(cluster) // FLOOR) * FLOOR, CAP)
    second = third * 9 // 10 if chosen.gc_thresh2 is None else chosen.gc_thresh2
    first = chosen.gc_thresh1
    if first is None:
        reused = in_cloud and cluster.spec.control_plane.cloud is Cloud.AWS
        first = 0 if reused else min(third * 8 // 10, second)
    return Thresholds(first, second, third)


def sysctl_text(chosen: Thresholds) -> str:
    """Return the text of a file for /etc/sysctl.d with the thresholds for IPv4 and IPv6."""
    lines = [
        "# Neighbour tables, sized for this cluster. Global to the kernel: not settable in a container.",
        *(
            f"net.{family}.neigh.default.gc_thresh{number} = {value}"
            for family in ("ipv4", "ipv6")
            for number, value in enumerate((chosen.gc_thresh1, chosen.gc_thresh2, chosen.gc_thresh3), start=1)
        ),
    ]
    return "\n".join(lines) + "\n"
