"""The classes of traffic between pods and others, by the other end's address. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv4Network, collapse_addresses, summarize_address_range

from cluster.spec import Cloud, Cluster

LINK_LOCAL = IPv4Network("169.254.0.0/16")
"""Services of a cloud on each host: metadata, time, names."""
WIRE_SERVER = IPv4Network("168.63.129.16/32")
"""The same in Azure ("What is IP address 168.63.129.16?")."""


def classes(cluster: Cluster) -> dict[str, list[str]]:
    """Return class -> its ranges. No address is in two classes: the first in this order has it.

    ceph: storage hosts, and networks that only Ceph uses. pod: pods, and Services without one. region: hosts in the region,
    and its cloud's services on each host. site: machines at sites, and networks behind their routers. All else is the internet.
    """
    spec = cluster.spec
    ranges: dict[str, Iterable[IPv4Network]] = {
        "ceph": _storage(cluster),
        "pod": (spec.network.pods, spec.network.services),
        "region": (spec.network.nodes, LINK_LOCAL, *([WIRE_SERVER] if spec.control_plane.cloud is Cloud.AZURE else [])),
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


def _storage(cluster: Cluster) -> Iterator[IPv4Network]:
    """Yield the addresses of storage hosts, and ranges of Ceph. A range that is part of a rack has other hosts too."""
    for site in cluster.spec.sites.values():
        if site.ceph is None:
            continue
        machines = [host for pool in site.ceph.hosts for host in cluster.hosts.get(pool, ())]
        yield from (IPv4Network(host.address) for host in machines)
        own = (*site.ceph.networks.public, *site.ceph.networks.cluster)
        yield from (each for each in own if not any(each.overlaps(rack) for rack in site.racks.values()))


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
