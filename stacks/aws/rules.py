"""The table of flows as security groups can say it. Pure: no resource is made here.

Where AWS differs from what the table takes for granted:

- A group lets in by group, so who is in a subnet without being in the group is not let in, and what a load balancer
  passes on with the client's address is ("Update the security groups for your Network Load Balancer"). It lets out by
  range: groups that name each other in both directions could not be made one after another.
- Two rules of a group that differ in nothing but their description are refused as duplicates, so flows that come to
  the same rule share one.
- Traffic to the VPC's resolver, time server and metadata service passes no group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from graphlib import TopologicalSorter
from ipaddress import AddressValueError, IPv4Address, IPv4Network, collapse_addresses

from cluster.artefacts import ArtefactSource
from cluster.spec import Cluster
from cluster.subnets import ZoneSubnets, worker_ranges, zone_subnets
from components.flows.flow import CLOUD_SIDE, Flow, Protocol, Role, Table
from components.flows.flow import ranges as port_ranges
from network.addresses import AddressPlan

GROUPED = (*CLOUD_SIDE, Role.LOAD_BALANCER, Role.PUBLIC_BALANCER, Role.SECRET_STORE, Role.FILE_STORE)
"""Roles that have a group, where the cluster has the role. That of the secret store is on its private endpoint, that of
the file store on its mount targets."""
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
    """What a group lets through. ports: the first and the last; None for every protocol and port."""

    group: Role
    direction: Direction
    peer: Peer
    protocol: Protocol
    ports: tuple[int, int] | None


def slug(role: Role) -> str:
    """A role in a name of a resource."""
    return role.value.lower().replace(" ", "-")


def groups(table: Table) -> tuple[Role, ...]:
    """The roles of a cluster that have a group; each after those that it lets in.

    Raises graphlib.CycleError for a table in which roles let each other in.
    """
    used = {role for flow in table for role in (flow.source, flow.destination)}
    present = tuple(role for role in GROUPED if role in used)
    lets_in: dict[Role, list[Role]] = {role: [] for role in present}
    for flow in table:
        if flow.destination in lets_in and flow.source in lets_in and flow.source is not flow.destination:
            lets_in[flow.destination].append(flow.source)
    return tuple(TopologicalSorter(lets_in).static_order())


def rules(table: Table, ranges: Mapping[Role, tuple[IPv4Network, ...]]) -> dict[Rule, str]:
    """Rule -> its description, which is the `why` of its flows. ranges: see `ranges_of`."""
    grouped = groups(table)
    whys: dict[Rule, dict[str, None]] = {}
    for flow in table:
        for rule in _of_flow(flow, ranges, grouped):
            whys.setdefault(rule, {})[flow.why] = None
    return {rule: " ".join(sentences) for rule, sentences in whys.items()}


def ranges_of(cluster: Cluster, plan: AddressPlan, source: ArtefactSource) -> dict[Role, tuple[IPv4Network, ...]]:
    """Where roles have their addresses: what has a fixed one has it alone, groups of hosts have their subnets.

    source: where hosts download.
    """
    plane = cluster.spec.control_plane
    zones = zone_subnets(cluster.spec)
    sites = {pool.site for pool in cluster.spec.pools.values() if pool.site}
    racks = [rack for site in sorted(sites) for rack in cluster.spec.sites[site].racks.values()]
    return {
        Role.OPERATOR: plane.operators,
        Role.PUBLIC_OPERATOR: plane.public.operators if plane.public else (),
        Role.SERVICE_CLIENT: tuple(collapse_addresses(cluster.spec.network.node_ports.outside)),
        Role.WORKER_AT_SITE: tuple(collapse_addresses(racks)),
        Role.ARTEFACT_MIRROR: _range(source.mirror),
        Role.REGISTRY: _range(source.registry),
        Role.CLOUD_API: _EVERYWHERE,
        Role.FILE_STORE: (),
        Role.API_SERVER: tuple(zone.api_servers for zone in zones),
        Role.ETCD_MAIN: _each(host.address for host in plan.etcd["main"]),
        Role.ETCD_EVENTS: _each(host.address for host in plan.etcd["events"]),
        # S3's addresses are public; packets to them go by the VPC's own endpoint.
        Role.BUCKETS: _EVERYWHERE,
        Role.WORKER_IN_REGION: worker_ranges(cluster.spec),
        Role.LOAD_BALANCER: _each(plan.balancers),
        Role.SECRET_STORE: _each(map(endpoint_of, zones)),
        Role.FILE_STORE: worker_ranges(cluster.spec),
        Role.CLOUD_API: _EVERYWHERE,
    }


def endpoint_of(zone: ZoneSubnets) -> IPv4Address:
    """Of the secret store in a zone. AWS would take the first free one, which is the load balancer's."""
    return zone.balancer + 1


def _each(addresses: Iterable[IPv4Address]) -> tuple[IPv4Network, ...]:
    return tuple(map(IPv4Network, addresses))


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
            by_group = other in grouped and (direction is Direction.IN or other is own)
            peers: tuple[Peer, ...] = (other,) if by_group else ranges[other]
            spans = port_ranges(flow.ports) or (None,)
            yield from (Rule(own, direction, peer, flow.protocol, span) for peer in peers for span in spans)
