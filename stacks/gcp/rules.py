"""The table of flows expressed as rules of a network firewall policy. Pure: creates no resources.

A rule applies to hosts with an identity, which only the stack assigns, and names peers by address: the subnetworks of
roles contain nothing else, and Google drops packets with a spoofed source address ("Enable IP forwarding for
instances"). Where Google differs from the table's assumptions:

- A policy's rules can't name peers by identity ("Migrate VPC firewall rules that use network tags and service
  accounts").
- A rule applies to at most ten identities ("VPC resource quotas"), so some become several rules.
- A passthrough load balancer preserves its clients' addresses and is not a host: its clients are admitted at the API
  servers, and permitted to reach its address; its probes come from Google's ranges ("Health checks overview").
- A host's traffic to the metadata service, which is also its resolver and its time server, bypasses every rule ("VPC
  firewall rules").
- All outgoing connections of a host pass unless a rule denies them: one of our rules denies all that no other permits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from cluster.artefacts import ArtefactSource
from cluster.spec import Cluster
from cluster.subnets import region_subnets
from components.control_plane.ports import API_PORT
from components.flows.flow import Flow, Protocol, Role, Table
from network.addresses import AddressPlan
from stacks.cloud_store import API_SERVERS
from stacks.firewalls import UNFILTERED, range_of_server, ranges_of_roles, single_addresses, slug
from stacks.gcp.endpoints import address as endpoint_address
from stacks.gcp.readers import of_workers
from stacks.gcp.volumes import file_range

PROBES: Mapping[Role, tuple[str, ...]] = {
    Role.LOAD_BALANCER: ("130.211.0.0/22", "35.191.0.0/16"),
    Role.PUBLIC_BALANCER: ("35.191.0.0/16", "209.85.152.0/22", "209.85.204.0/22"),
}
ANYWHERE = "0.0.0.0/0"
_MOST_IDENTITIES = 10


class Direction(StrEnum):
    """Relative to the hosts that a rule applies to."""

    IN = "INGRESS"
    OUT = "EGRESS"


Service = tuple[Protocol, tuple[int, ...]]


@dataclass(frozen=True)
class Rule:
    """What is admitted. targets: readers whose hosts it applies to. ranges: addresses of the other end."""

    direction: Direction
    name: str
    targets: tuple[str, ...]
    ranges: tuple[str, ...]
    services: tuple[Service, ...]
    why: str


@dataclass(frozen=True)
class _Way:
    """Traffic between hosts of a role and a peer. name: the peer's name."""

    direction: Direction
    name: str
    ranges: tuple[str, ...]


def rules(cluster: Cluster, plan: AddressPlan, source: ArtefactSource, table: Table) -> tuple[Rule, ...]:
    """Return the rules of a cluster. source: where hosts download.

    Flows between hosts of a role and the same peer form one rule, and so do identical flows of several roles.
    """
    readers, ranges = readers_of(cluster, plan), ranges_of(cluster, plan, source)
    whys: dict[tuple[_Way, Role], dict[Service, list[str]]] = {}
    for flow in table:
        for role, way in _ways(flow, readers, ranges):
            services = whys.setdefault((_first_named(way, whys), role), {})
            services.setdefault((flow.protocol, flow.ports), []).append(flow.why)
    roles_by_rule: dict[tuple[_Way, tuple[Service, ...]], list[Role]] = {}
    for (way, role), services in whys.items():
        roles_by_rule.setdefault((way, tuple(services)), []).append(role)
    return tuple(
        rule
        for (way, services), roles in roles_by_rule.items()
        for rule in _split(way, services, roles, readers, _sentences(whys[way, role] for role in roles))
    )


def readers_of(cluster: Cluster, plan: AddressPlan) -> dict[Role, tuple[str, ...]]:
    """Return role with hosts in the region -> the readers whose identities they have."""
    main = tuple(host.name for host in plan.etcd["main"])
    events = tuple(host.name for host in plan.etcd["events"] if host.name not in main)
    return {
        Role.API_SERVER: (API_SERVERS,),
        Role.ETCD_MAIN: main,
        Role.ETCD_EVENTS: events,
        Role.WORKER_IN_REGION: of_workers(cluster),
    }


def ranges_of(cluster: Cluster, plan: AddressPlan, source: ArtefactSource) -> dict[Role, tuple[str, ...]]:
    """Return role -> its addresses; none if nothing has the role."""
    google = single_addresses([endpoint_address(cluster)])
    ranges = {
        **ranges_of_roles(cluster, plan),
        Role.LOAD_BALANCER: single_addresses(plan.balancers),
        Role.API_SERVER: (region_subnets(cluster.spec).api_servers,),
        Role.SECRET_STORE: google,
        Role.CLOUD_API: google,
        Role.BUCKETS: google,
        Role.FILE_STORE: (file_range(cluster),),
    }
    return {role: tuple(map(str, own)) for role, own in ranges.items()} | {
        Role.ARTEFACT_MIRROR: _place_of(source.mirror),
        Role.REGISTRY: _place_of(source.registry),
    }


def _place_of(server: str | None) -> tuple[str, ...]:
    """Return the range of a base URL or host:port; anywhere for a name."""
    return (str(range_of_server(server or "") or ANYWHERE),)


def _ways(
    flow: Flow, readers: Mapping[Role, tuple[str, ...]], ranges: Mapping[Role, tuple[str, ...]]
) -> Iterator[tuple[Role, _Way]]:
    """Yield (role whose hosts a rule applies to, way) for a flow."""
    source, destination = flow.source, flow.destination
    if not UNFILTERED.isdisjoint({source, destination}):
        return
    # Behind a load balancer's address are the API servers.
    taker = Role.API_SERVER if destination in PROBES else destination
    if source in PROBES:
        if API_PORT in flow.ports:
            yield taker, _Way(Direction.IN, slug(source), PROBES[source])
    elif taker in readers and ranges.get(source):
        yield taker, _Way(Direction.IN, slug(source), ranges[source])
    if source in readers and ranges.get(destination):
        yield source, _Way(Direction.OUT, slug(destination), ranges[destination])


def _first_named(way: _Way, ways: Iterable[tuple[_Way, Role]]) -> _Way:
    """Return the way with the name that the same direction and addresses got first."""
    same = (earlier for earlier, _ in ways if (earlier.direction, earlier.ranges) == (way.direction, way.ranges))
    return next(same, way)


def _sentences(of: Iterable[Mapping[Service, list[str]]]) -> str:
    return " ".join(dict.fromkeys(why for services in of for whys in services.values() for why in whys))


def _split(
    way: _Way, services: tuple[Service, ...], roles: list[Role], readers: Mapping[Role, tuple[str, ...]], why: str
) -> Iterator[Rule]:
    """Yield as many rules as the limit of identities per rule requires."""
    targets = tuple(reader for role in roles for reader in readers[role])
    word = "from" if way.direction is Direction.IN else "to"
    name = "-".join((*map(slug, roles), word, way.name))
    for number, own in enumerate(_slices(targets), 1):
        numbered = name if number == 1 else f"{name}-{number}"
        yield Rule(way.direction, numbered, own, way.ranges, services, why)


def _slices(of: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [of[start : start + _MOST_IDENTITIES] for start in range(0, len(of), _MOST_IDENTITIES)]
