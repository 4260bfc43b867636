"""The table of flows expressed as security groups. Pure: creates no resources.

Where AWS differs from the table's assumptions:

- A group admits by group, so a host in a subnet without the group is not admitted, but traffic that a load balancer
  forwards with the client's address is ("Update the security groups for your Network Load Balancer"). It permits
  egress by range: groups that refer to each other in both directions can't be created one after another.
- Two rules of a group that differ only in their description are refused as duplicates, so flows that result in the same
  rule share it.
- Traffic to the VPC's resolver, time server and metadata service bypasses groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from graphlib import TopologicalSorter
from ipaddress import IPv4Address, IPv4Network

from cluster.artefacts import ArtefactSource
from cluster.spec import Cluster
from cluster.subnets import ZoneSubnets, worker_ranges, zone_subnets
from components.flows.flow import CLOUD_SIDE, Flow, Protocol, Role, Table
from components.flows.flow import ranges as port_ranges
from network.addresses import AddressPlan
from stacks.firewalls import UNFILTERED, range_of_server, ranges_of_roles, single_addresses

GROUPED = (*CLOUD_SIDE, Role.LOAD_BALANCER, Role.PUBLIC_BALANCER, Role.SECRET_STORE, Role.FILE_STORE)
"""Roles that have a group, if the cluster has the role. The secret store's group is on its private endpoint, the file
store's on its mount targets."""
_EVERYWHERE = (IPv4Network("0.0.0.0/0"),)


class Direction(StrEnum):
    """Relative to the group."""

    IN = "from"
    OUT = "to"


Peer = Role | IPv4Network
"""A group, or a range of addresses without a group."""


@dataclass(frozen=True)
class Rule:
    """What a group admits. ports: the first and the last; None for every protocol and port."""

    group: Role
    direction: Direction
    peer: Peer
    protocol: Protocol
    ports: tuple[int, int] | None


def groups(table: Table) -> tuple[Role, ...]:
    """Return the roles of a cluster that have a group, each after those that it admits.

    Raises graphlib.CycleError for a table in which roles admit each other.
    """
    used = {role for flow in table for role in (flow.source, flow.destination)}
    present = tuple(role for role in GROUPED if role in used)
    admitted: dict[Role, list[Role]] = {role: [] for role in present}
    for flow in table:
        if flow.destination in admitted and flow.source in admitted and flow.source is not flow.destination:
            admitted[flow.destination].append(flow.source)
    return tuple(TopologicalSorter(admitted).static_order())


def rules(table: Table, ranges: Mapping[Role, tuple[IPv4Network, ...]]) -> dict[Rule, str]:
    """Return rule -> its description, the `why` of its flows. ranges: see `ranges_of`."""
    grouped = groups(table)
    whys: dict[Rule, dict[str, None]] = {}
    for flow in table:
        for rule in _of_flow(flow, ranges, grouped):
            whys.setdefault(rule, {})[flow.why] = None
    return {rule: " ".join(sentences) for rule, sentences in whys.items()}


def ranges_of(cluster: Cluster, plan: AddressPlan, source: ArtefactSource) -> dict[Role, tuple[IPv4Network, ...]]:
    """Return the addresses of each role: a fixed address as such, groups of hosts as their subnets.

    source: where hosts download.
    """
    zones = zone_subnets(cluster.spec)
    return {
        **ranges_of_roles(cluster, plan),
        Role.ARTEFACT_MIRROR: _range(source.mirror),
        Role.REGISTRY: _range(source.registry),
        Role.API_SERVER: tuple(zone.api_servers for zone in zones),
        # S3's addresses are public; packets to them use the VPC's own endpoint.
        Role.BUCKETS: _EVERYWHERE,
        Role.LOAD_BALANCER: single_addresses(plan.balancers),
        Role.SECRET_STORE: single_addresses(map(endpoint_of, zones)),
        Role.FILE_STORE: worker_ranges(cluster.spec),
        Role.CLOUD_API: _EVERYWHERE,
    }


def endpoint_of(zone: ZoneSubnets) -> IPv4Address:
    """Return the secret store's address in a zone. By default AWS would take the first free one, the load balancer's."""
    return zone.balancer + 1


def _range(server: str | None) -> tuple[IPv4Network, ...]:
    """Return the range of a base URL or host:port; everywhere for a name."""
    range_ = range_of_server(server or "")
    return (range_,) if range_ else _EVERYWHERE


def _of_flow(flow: Flow, ranges: Mapping[Role, tuple[IPv4Network, ...]], grouped: tuple[Role, ...]) -> Iterator[Rule]:
    ends = {flow.source, flow.destination}
    if not UNFILTERED.isdisjoint(ends):
        return
    for own, other, direction in (
        (flow.destination, flow.source, Direction.IN),
        (flow.source, flow.destination, Direction.OUT),
    ):
        if own in grouped:
            by_group = other in grouped and (direction is Direction.IN or other is own)
            peers: tuple[Peer, ...] = (other,) if by_group else ranges[other]
            spans = port_ranges(flow.ports) or (None,)
            yield from (Rule(own, direction, peer, flow.protocol, span) for peer in peers for span in spans)
