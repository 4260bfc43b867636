"""The classes of traffic between pods and others, by the other end's address. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv4Network, collapse_addresses, summarize_address_range

from cluster.ceph import DAEMON_PORTS, MONITOR_PORTS, Networks
from cluster.spec import Cloud, Cluster

LINK_LOCAL = IPv4Network("169.254.0.0/16")
"""Services of a cloud on each host: metadata, time, names."""
WIRE_SERVER = IPv4Network("168.63.129.16/32")
"""The same in Azure ("What is IP address 168.63.129.16?")."""


def classes(cluster: Cluster) -> dict[str, list[str]]:
    """Return class -> its ranges. No address is in two of them: the first in this order has it.

    ceph: networks that only Ceph uses. pod: pods, and Services without one. region: hosts in the region, and its cloud's services
    on each host. storage: racks of sites with Ceph, which are of the class ceph at Ceph's ports and of the class site at others.
    site: other racks, and networks behind the routers of sites. All else is the internet.

    Nothing depends on single hosts: another one changes the settings of no other.
    """
    spec = cluster.spec
    with_ceph = [site for site in spec.sites.values() if site.ceph]
    ranges: dict[str, Iterable[IPv4Network]] = {
        "ceph": _networks_of_ceph(cluster),
        "pod": (spec.network.pods, spec.network.services),
        "region": (spec.network.nodes, LINK_LOCAL, *([WIRE_SERVER] if spec.control_plane.cloud is Cloud.AZURE else [])),
        "storage": (rack for site in with_ceph for rack in site.racks.values()),
        "site": _sites(cluster),
    }
    taken: list[IPv4Network] = []
    result = {}
    for name, own in ranges.items():
        left = list(without(own, taken))
        taken += left
        if left:
            result[name] = [str(each) for each in left]
    return result


def ceph_ports() -> list[str]:
    """Return Ceph's ports as texts, ranges as "6800-7568"."""
    return [*map(str, MONITOR_PORTS), f"{DAEMON_PORTS[0]}-{DAEMON_PORTS[-1]}"]


def _networks_of_ceph(cluster: Cluster) -> Iterator[IPv4Network]:
    """Yield the ranges of Ceph that are no part of a rack: those have other hosts too."""
    racks = [rack for site in cluster.spec.sites.values() for rack in site.racks.values()]
    for site in cluster.spec.sites.values():
        networks = site.ceph.networks if site.ceph else Networks()
        yield from (each for each in (*networks.public, *networks.cluster) if not any(map(each.overlaps, racks)))


def _sites(cluster: Cluster) -> Iterator[IPv4Network]:
    for site in cluster.spec.sites.values():
        yield from site.racks.values()
        if site.vpn:
            yield from site.vpn.networks


def without(own: Iterable[IPv4Network], others: Iterable[IPv4Network]) -> Iterator[IPv4Network]:
    """Yield the parts of ranges that are in none of the others, merged and in order."""
    removed = sorted((int(each[0]), int(each[-1])) for each in others)
    for each in collapse_addresses(own):
        first, last = int(each[0]), int(each[-1])
        for start, end in removed:
            if end < first or start > last:
                continue
            if start > first:
                yield from summarize_address_range(IPv4Address(first), IPv4Address(start - 1))
            first = end + 1
        if first <= last:
            yield from summarize_address_range(IPv4Address(first), IPv4Address(last))
