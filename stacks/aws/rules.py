"""The table of flows as security groups can say it. Pure: no resource is made here.

Where AWS differs from what the table takes for granted:

- A group names peers by group or by range, never its own hosts' addresses.
- Two rules of a group that differ in nothing but their description are refused as duplicates, so flows that come to
  the same rule share one.
- Traffic to the VPC's resolver, time server and metadata service passes no group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import AddressValueError, IPv4Address, IPv4Network, collapse_addresses

from cluster.artefacts import ArtefactSource
from cluster.spec import Cluster
from flows.flow import CLOUD_SIDE, Flow, Protocol, Role, Table

GROUPED = (*CLOUD_SIDE, Role.LOAD_BALANCER, Role.SECRET_STORE)
"""Roles that have a group, where the cluster has the role. That of the secret store is on its private endpoint."""
UNFILTERED = frozenset({Role.RESOLVER, Role.TIME_SERVER, Role.METADATA})
_EVERYWHERE = (IPv4Network("0.0.0.0/0"),)


class Direction(StrEnum):
    """Seen from the group."""

    IN = "from"
    OUT = "to"


Peer = Role | IPv4Network
"""A group, or a range of those who have none."""


@dataclass(frozen=True)
class Rule:
    """What a group lets through. port: None for every protocol and port."""

    group: Role
    direction: Direction
    peer: Peer
    protocol: Protocol
    port: int | None

    @property
    def name(self) -> str:
        """Unique among the rules of a cluster, and made of nothing that may change without the rule."""
        peer = slug(self.peer) if isinstance(self.peer, Role) else str(self.peer).replace("/", "-")
        port = "" if self.port is None else f"-{self.port}"
        return f"{slug(self.group)}-{self.direction}-{peer}-{self.protocol}{port}"


def slug(role: Role) -> str:
    """A role in a name of a resource."""
    return role.value.lower().replace(" ", "-")


def groups(table: Table) -> tuple[Role, ...]:
    """The roles of a cluster that have a group."""
    used = {role for flow in table for role in (flow.source, flow.destination)}
    return tuple(role for role in GROUPED if role in used)


def rules(table: Table, ranges: Mapping[Role, tuple[IPv4Network, ...]]) -> dict[Rule, str]:
    """Rule -> its description, which is the `why` of its flows. ranges: of roles without a group; see `ranges_of`."""
    grouped = groups(table)
    whys: dict[Rule, dict[str, None]] = {}
    for flow in table:
        for rule in _of_flow(flow, ranges, grouped):
            whys.setdefault(rule, {})[flow.why] = None
    return {rule: " ".join(sentences) for rule, sentences in whys.items()}


def ranges_of(cluster: Cluster, source: ArtefactSource) -> dict[Role, tuple[IPv4Network, ...]]:
    """The addresses of roles that have no group. source: where hosts download."""
    sites = {pool.site for pool in cluster.spec.pools.values() if pool.site}
    racks = [rack for site in sorted(sites) for rack in cluster.spec.sites[site].racks.values()]
    return {
        Role.OPERATOR: cluster.spec.control_plane.operators,
        Role.WORKER_AT_SITE: tuple(collapse_addresses(racks)),
        Role.ARTEFACT_MIRROR: _range(source.mirror),
        Role.REGISTRY: _range(source.registry),
    }


def _range(address: str | None) -> tuple[IPv4Network, ...]:
    """Of a base URL or host:port. A group knows no names, and upstream sites are anywhere."""
    host = (address or "").rpartition("//")[2].partition("/")[0].partition(":")[0]
    try:
        return (IPv4Network(IPv4Address(host)),)
    except AddressValueError:
        return _EVERYWHERE


def _of_flow(flow: Flow, ranges: Mapping[Role, tuple[IPv4Network, ...]], grouped: tuple[Role, ...]) -> Iterator[Rule]:
    ends = {flow.source, flow.destination}
    if not UNFILTERED.isdisjoint(ends):
        return
    for own, other, direction in (
        (flow.destination, flow.source, Direction.IN),
        (flow.source, flow.destination, Direction.OUT),
    ):
        if own in grouped:
            peers: tuple[Peer, ...] = (other,) if other in grouped else ranges[other]
            ports = flow.ports or (None,)
            yield from (Rule(own, direction, peer, flow.protocol, port) for peer in peers for port in ports)
