"""The table of flows expressed as a network security group. Pure: creates no resources.

One group protects every subnet, and each rule names both ends. Where Azure differs from the table's assumptions:

- A group ends with rules that permit all traffic inside the network and out of it; two of our rules precede them and
  deny it ("Azure network security groups overview").
- A load balancer preserves its clients' addresses, and a rule for incoming packets applies to the host behind it. So
  clients of the load balancer are admitted at the API servers, and only its probes come from `AzureLoadBalancer`.
- Members of two etcds share a subnet: rules there name the members' own addresses, which are fixed.
- Resolver, metadata service and the load balancer's host address bypass every group unless a rule names their service
  tags. Clocks follow the hypervisor's through a device, without packets ("Time sync for Linux VMs in Azure").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from cluster.artefacts import ArtefactSource
from cluster.spec import Cluster
from cluster.subnets import region_subnets
from components.flows.flow import Flow, Protocol, Role, Table, spans
from network.addresses import AddressPlan
from stacks.firewalls import UNFILTERED, range_of_server, ranges_of_roles, slug

_BALANCERS = frozenset({Role.LOAD_BALANCER, Role.PUBLIC_BALANCER})
LOAD_BALANCER, INTERNET, ANYWHERE = "AzureLoadBalancer", "Internet", "*"
"""Service tags; the second means everything with a public address."""
FIRST, LAST = 100, 4096
"""Priorities of rules: the lowest number is evaluated first."""

SUBNETS: Mapping[Role, str] = {
    Role.API_SERVER: "api-servers",
    Role.ETCD_MAIN: "etcd",
    Role.ETCD_EVENTS: "etcd",
    Role.SECRET_STORE: "endpoints",
    Role.FILE_STORE: "endpoints",
    Role.BUCKETS: "endpoints",
    Role.WORKER_IN_REGION: "workers",
}
"""Roles whose subnet the group protects -> the subnet."""


class Direction(StrEnum):
    """Relative to the protected subnet."""

    IN = "Inbound"
    OUT = "Outbound"


@dataclass(frozen=True)
class Rule:
    """What the group admits. sources, destinations: ranges, or a single tag."""

    direction: Direction
    name: str
    sources: tuple[str, ...]
    destinations: tuple[str, ...]
    protocol: Protocol
    ports: tuple[int, ...]
    why: str


def rules(cluster: Cluster, plan: AddressPlan, source: ArtefactSource, table: Table) -> tuple[Rule, ...]:
    """Return the group's rules, in the order of the table. source: where hosts download."""
    places = places_of(cluster, plan, source)
    by_name: dict[tuple[Direction, str], Rule] = {}
    for flow in table:
        for rule in _of_flow(flow, places):
            by_name.setdefault((rule.direction, rule.name), rule)
    return tuple(by_name.values())


def places_of(cluster: Cluster, plan: AddressPlan, source: ArtefactSource) -> dict[Role, tuple[str, ...]]:
    """Return role -> its ranges or tag; none if nothing has the role."""
    subnets = region_subnets(cluster.spec)
    main, events = (tuple(str(host.address) for host in plan.etcd[role]) for role in ("main", "events"))
    return {
        **{role: tuple(map(str, ranges)) for role, ranges in ranges_of_roles(cluster, plan).items()},
        Role.API_SERVER: (str(subnets.api_servers),),
        # A change of their spelling, to /32, would change the group's rules.
        Role.ETCD_MAIN: main,
        Role.ETCD_EVENTS: events,
        Role.SECRET_STORE: (str(subnets.endpoints),),
        Role.FILE_STORE: (str(subnets.endpoints),),
        Role.BUCKETS: (str(subnets.endpoints),),
        # "Virtual network service tags": the Resource Manager, whose addresses are public.
        Role.CLOUD_API: ("AzureResourceManager",),
        Role.ARTEFACT_MIRROR: _place_of(source.mirror),
        Role.REGISTRY: _place_of(source.registry),
    }


def _place_of(server: str | None) -> tuple[str, ...]:
    """Return the range of a base URL or host:port; anywhere for a name, because a mirror may be anywhere."""
    return (INTERNET,) if server is None else (str(range_of_server(server) or ANYWHERE),)


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
            name = "-".join((slug(flow.source), "to", slug(flow.destination), flow.protocol, *spans(flow.ports)))
            yield Rule(direction, name, sources, destinations, flow.protocol, flow.ports, flow.why)
