"""Ranges for a new cluster that no cluster of the fleet has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network

from cluster.check import Checked
from cluster.check.ranges import free, ranges
from cluster.errors import RefusedError
from cluster.positions import nowhere
from cluster.spec import Cluster

OPERATORS = IPv4Network("10.250.0.0/24")
"""What stands for the operators' own network until they write it."""
_KEPT_FOR = {
    "operators": "10.250.0.0/16",
    "what a lab has beside its clusters": "10.79.0.0/16",
    "lab": "10.77.0.0/16 10.78.0.0/16 10.200.0.0/15",
    "jaguar": "10.8.0.0/16 10.32.0.0/16 10.48.0.0/16 10.208.0.0/12",
    "horus, ibis": "10.128.0.0/12 10.144.0.0/15 10.160.0.0/12 10.176.0.0/15",
    "small examples": "10.20.0.0/16 10.64.0.0/14 10.68.0.0/15 10.80.0.0/15 10.84.0.0/14 10.112.0.0/14 10.116.0.0/15",
}
KEPT = tuple(IPv4Network(word) for words in _KEPT_FOR.values() for word in words.split())
"""Ranges of the lab and of examples: one that is copied into a fleet never clashes with a cluster that was made here."""

_NARROW = 16
"""A wider range of operators says who is let in, not which addresses are in use."""
_PODS, _SERVICES, _NODES, _NODES_OF_LAB, _RACK = 16, 20, 20, 24, 24


@dataclass(frozen=True)
class Ranges:
    """rack: for a site, else None."""

    pods: IPv4Network
    services: IPv4Network
    nodes: IPv4Network
    rack: IPv4Network | None = None

    def named(self) -> dict[str, str]:
        """Name -> range, of those that there are."""
        found = {"pods": self.pods, "services": self.services, "nodes": self.nodes, "rack": self.rack}
        return {name: str(network) for name, network in found.items() if network}


def taken(fleet: Iterable[Cluster]) -> Iterator[IPv4Network]:
    """Every range and address that the specs and hosts files of a fleet name."""
    for cluster in fleet:
        spec = cluster.spec
        yield from (one.network for one in ranges(Checked(cluster, nowhere(cluster.name))))
        yield from (IPv4Network(host.bmc) for _, host in cluster.host_list() if host.bmc)
        for site in spec.sites.values():
            yield from (*site.ceph.networks.public, *site.ceph.networks.cluster) if site.ceph else ()
        outside = (*spec.control_plane.operators, *spec.network.node_ports.outside)
        yield from (network for network in outside if network.prefixlen >= _NARROW)


def choose(fleet: Iterable[Cluster], *, lab: bool, site: bool) -> Ranges:
    """The first free ranges: equal fleets give equal ones. RefusedError where there is no room."""
    used = [*taken(fleet), *KEPT]

    def next_free(prefix: int) -> IPv4Network:
        found = free(prefix, used)
        if found is None:
            raise RefusedError(
                f"no private range of a /{prefix} is free in the fleet; write the spec by hand", code="init-refused"
            )
        used.append(found)
        return found

    pods, services = next_free(_PODS), next_free(_SERVICES)
    nodes = next_free(_NODES_OF_LAB if lab else _NODES)
    return Ranges(pods, services, nodes, next_free(_RACK) if site else None)
