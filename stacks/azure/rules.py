"""The table of flows as a network security group can say it. Pure: no resource is made here.

One group guards every subnet, and each rule names both its ends. Where Azure differs from what the table takes for granted:

- A group ends with rules that let everything pass inside the network and out of it; two rules of ours come before
  them and refuse it ("Azure network security groups overview").
- A load balancer keeps its clients' addresses, and a rule for incoming packets sees the host behind it. So
  who may reach the load balancer is let in at the API servers, and only its probes come from `AzureLoadBalancer`.
- Members of two etcds share a subnet: rules there name the members' own addresses, which are fixed.
- Resolver, metadata service and the load balancer's host address pass every group unless a rule names their service
  tags. Clocks follow the hypervisor's through a device, without packets ("Time sync for Linux VMs in Azure").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import AddressValueError, IPv4Address, IPv4Network, collapse_addresses

from cluster.artefacts import ArtefactSource
from cluster.spec import Cluster
from cluster.subnets import region_subnets
from components.flows.flow import Flow, Protocol, Role, Table, spans
from network.addresses import AddressPlan

_BALANCERS = frozenset({Role.LOAD_BALANCER, Role.PUBLIC_BALANCER})
UNFILTERED = frozenset({Role.RESOLVER, Role.TIME_SERVER, Role.METADATA})
LOAD_BALANCER, INTERNET, ANYWHERE = "AzureLoadBalancer", "Internet", "*"
"""Service tags; the second is all that has a public address."""
FIRST, LAST = 100, 4096
"""Priorities of rules: the lowest number is looked at first."""

SUBNETS: Mapping[Role, str] = {
    Role.API_SERVER: "api-servers",
    Role.ETCD_MAIN: "etcd",
    Role.ETCD_EVENTS: "etcd",
    Role.SECRET_STORE: "endpoints",
    Role.FILE_STORE: "endpoints",
    Role.BUCKETS: "endpoints",
    Role.WORKER_IN_REGION: "workers",
}
"""Roles whose subnet the group guards -> the subnet."""


class Direction(StrEnum):
    """Seen from the subnet that is guarded."""

    IN = "Inbound"
    OUT = "Outbound"


@dataclass(frozen=True)
class Rule:
    """What the group lets through. sources, destinations: ranges, or one tag alone."""

    direction: Direction
    name: str
    sources: tuple[str, ...]
    destinations: tuple[str, ...]
    protocol: Protocol
    ports: tuple[int, ...]
    why: str


def rules(cluster: Cluster, plan: AddressPlan, source: ArtefactSource, table: Table) -> tuple[Rule, ...]:
    """The group's rules, in the order of the table. source: where hosts download."""
    places = places_of(cluster, plan, source)
    found: dict[tuple[Direction, str], Rule] = {}
    for flow in table:
        for rule in _of_flow(flow, places):
            found.setdefault((rule.direction, rule.name), rule)
    return tuple(found.values())


def places_of(cluster: Cluster, plan: AddressPlan, source: ArtefactSource) -> dict[Role, tuple[str, ...]]:
    """Role -> its ranges or tag; none where nobody has the role."""
    subnets, plane = region_subnets(cluster.spec), cluster.spec.control_plane
    sites = {pool.site for pool in cluster.spec.pools.values() if pool.site}
    racks = [rack for site in sorted(sites) for rack in cluster.spec.sites[site].racks.values()]
    main, events = (tuple(str(host.address) for host in plan.etcd[role]) for role in ("main", "events"))
    return {
        Role.OPERATOR: tuple(map(str, plane.operators)),
        Role.PUBLIC_OPERATOR: tuple(map(str, plane.public.operators)) if plane.public else (),
        Role.SERVICE_CLIENT: tuple(map(str, collapse_addresses(cluster.spec.network.node_ports.outside))),
        Role.API_SERVER: (str(subnets.api_servers),),
        Role.ETCD_MAIN: main,
        Role.ETCD_EVENTS: events,
        Role.WORKER_IN_REGION: (str(subnets.workers),),
        Role.WORKER_AT_SITE: tuple(map(str, collapse_addresses(racks))),
        Role.SECRET_STORE: (str(subnets.endpoints),),
        Role.FILE_STORE: (str(subnets.endpoints),),
        Role.BUCKETS: (str(subnets.endpoints),),
        # "Virtual network service tags": the Resource Manager, whose addresses are public.
        Role.CLOUD_API: ("AzureResourceManager",),
        Role.ARTEFACT_MIRROR: _place_of(source.mirror),
        Role.REGISTRY: _place_of(source.registry),
    }


def _place_of(address: str | None) -> tuple[str, ...]:
    """Of a base URL or host:port. A group knows no names, and a mirror of one's own may stand anywhere."""
    if address is None:
        return (INTERNET,)
    host = address.rpartition("//")[2].partition("/")[0].partition(":")[0]
    try:
        return (str(IPv4Network(IPv4Address(host))),)
    except AddressValueError:
        return (ANYWHERE,)


def _of_flow(flow: Flow, places: Mapping[Role, tuple[str, ...]]) -> Iterator[Rule]:
    if not UNFILTERED.isdisjoint({flow.source, flow.destination}):
        return
    # Behind a load balancer are the API servers.
    destination = Role.API_SERVER if flow.destination in _BALANCERS else flow.destination
    probes = flow.source in _BALANCERS
    sources = (LOAD_BALANCER,) if probes else places.get(flow.source, ())
    destinations = places.get(destination, ())
    if not sources or not destinations:
        return
    for role, direction in ((destination, Direction.IN), (flow.source, Direction.OUT)):
        if role in SUBNETS:
            name = "-".join((_slug(flow.source), "to", _slug(flow.destination), flow.protocol, *spans(flow.ports)))
            yield Rule(direction, name, sources, destinations, flow.protocol, flow.ports, flow.why)


def _slug(role: Role) -> str:
    return role.value.lower().replace(" ", "-")
