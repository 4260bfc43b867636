"""Choose ranges for a new cluster that are unused in the fleet."""

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
"""Placeholder for the operators' network."""
_KEPT_FOR = {
    "operators": "10.250.0.0/16",
    "other networks of a lab": "10.79.0.0/16",
    "lab": "10.77.0.0/16 10.78.0.0/16 10.200.0.0/15",
    "jaguar": "10.8.0.0/16 10.32.0.0/16 10.48.0.0/16 10.208.0.0/12",
    "horus, ibis": "10.128.0.0/12 10.144.0.0/15 10.160.0.0/12 10.176.0.0/15",
    "small examples": "10.20.0.0/16 10.64.0.0/14 10.68.0.0/15 10.80.0.0/15 10.84.0.0/14 10.112.0.0/14 10.116.0.0/15",
}
KEPT = tuple(IPv4Network(word) for words in _KEPT_FOR.values() for word in words.split())
"""Ranges of the lab and of examples, so that an example copied into a fleet never clashes with a cluster created here."""

_NARROW = 16
"""Wider ranges in operators say who may connect, not which addresses are in use."""
_PODS, _SERVICES, _NODES, _NODES_OF_LAB, _RACK = 16, 20, 20, 24, 24


@dataclass(frozen=True)
class Ranges:
    """Ranges of a new cluster. rack: for a site, otherwise None."""

    pods: IPv4Network
    services: IPv4Network
    nodes: IPv4Network
    rack: IPv4Network | None = None

    def named(self) -> dict[str, str]:
        """Map names to ranges, without those that are None."""
        networks = {"pods": self.pods, "services": self.services, "nodes": self.nodes, "rack": self.rack}
        return {name: str(network) for name, network in networks.items() if network}


def used_ranges(fleet: Iterable[Cluster]) -> Iterator[IPv4Network]:
    """Yield every range and address in the specs and hosts files of a fleet."""
    for cluster in fleet:
        spec = cluster.spec
        yield from (declared.network for declared in ranges(Checked(cluster, nowhere(cluster.name))))
        yield from (IPv4Network(host.bmc) for _, host in cluster.host_list() if host.bmc)
        for site in spec.sites.values():
            yield from (*site.ceph.networks.public, *site.ceph.networks.cluster) if site.ceph else ()
        outside = (*spec.control_plane.operators, *spec.network.node_ports.outside)
        yield from (network for network in outside if network.prefixlen >= _NARROW)


def choose(fleet: Iterable[Cluster], *, lab: bool, site: bool) -> Ranges:
    """Return the first free ranges. Equal fleets give equal ranges. Raises RefusedError if there is no room."""
    used = [*used_ranges(fleet), *KEPT]

    def next_free(prefix: int) -> IPv4Network:
        network = free(prefix, used)
        if network is None:
            raise RefusedError(
                f"no private /{prefix} is free in the fleet; write the spec by hand", code="init-refused"
            )
        used.append(network)
        return network

    pods, services = next_free(_PODS), next_free(_SERVICES)
    nodes = next_free(_NODES_OF_LAB if lab else _NODES)
    return Ranges(pods, services, nodes, next_free(_RACK) if site else None)
