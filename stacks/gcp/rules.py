"""The table of flows as firewall rules of a network can say it. Pure: no resource is made here.

Rules name hosts by their identities, which nobody but the stack gives. Where Google differs from what the table takes
for granted:

- A rule for incoming packets names its peers by identity or by range; one for outgoing packets by range alone.
- A rule names at most ten identities at either side ("VPC resource quotas"), so some are several.
- An internal load balancer keeps its clients' addresses and is no host: who may reach it is let in at the API servers,
  and let out to its address; its probes come from ranges of Google's ("Health checks overview").
- A host's way to the metadata service, which is its resolver and its clock too, passes every rule ("VPC firewall
  rules").
- Everything that a host opens passes, unless a rule refuses it: one of ours refuses all that no other allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import AddressValueError, IPv4Address, IPv4Network, collapse_addresses

from cluster.artefacts import ArtefactSource
from cluster.spec import Cluster
from cluster.subnets import region_subnets
from control_plane.ports import API_PORT
from flows.flow import Flow, Protocol, Role, Table
from network.addresses import AddressPlan
from stacks.gcp.endpoints import address as endpoint_address
from stacks.payloads import API_SERVERS, WORKERS

UNFILTERED = frozenset({Role.RESOLVER, Role.TIME_SERVER, Role.METADATA})
PROBES = ("130.211.0.0/22", "35.191.0.0/16")
ANYWHERE = "0.0.0.0/0"
_MOST_IDENTITIES = 10


class Direction(StrEnum):
    """Seen from the hosts that a rule is for."""

    IN = "INGRESS"
    OUT = "EGRESS"


Service = tuple[Protocol, tuple[int, ...]]


@dataclass(frozen=True)
class Rule:
    """What is let through. targets: readers whose hosts it is for. Either peers, readers too, or ranges."""

    direction: Direction
    name: str
    targets: tuple[str, ...]
    peers: tuple[str, ...]
    ranges: tuple[str, ...]
    services: tuple[Service, ...]
    why: str


@dataclass(frozen=True)
class _Way:
    """Between hosts of a role and somebody. name: of who that is."""

    direction: Direction
    name: str
    peers: tuple[str, ...]
    ranges: tuple[str, ...]


def rules(cluster: Cluster, plan: AddressPlan, source: ArtefactSource, table: Table) -> tuple[Rule, ...]:
    """The rules of a cluster. source: where hosts download.

    What hosts of a role open to the same somebody is one rule, and what several roles open alike is one too.
    """
    readers, ranges = readers_of(plan), ranges_of(cluster, plan, source)
    whys: dict[tuple[_Way, Role], dict[Service, list[str]]] = {}
    for flow in table:
        for role, way in _ways(flow, readers, ranges):
            services = whys.setdefault((_known(way, whys), role), {})
            services.setdefault((flow.protocol, flow.ports), []).append(flow.why)
    alike: dict[tuple[_Way, tuple[Service, ...]], list[Role]] = {}
    for (way, role), services in whys.items():
        alike.setdefault((way, tuple(services)), []).append(role)
    return tuple(
        rule
        for (way, services), roles in alike.items()
        for rule in _tens(way, services, roles, readers, _sentences(whys[way, role] for role in roles))
    )


def readers_of(plan: AddressPlan) -> dict[Role, tuple[str, ...]]:
    """Role with hosts in the region -> whose identities they have."""
    main = tuple(host.name for host in plan.etcd["main"])
    events = tuple(host.name for host in plan.etcd["events"] if host.name not in main)
    return {
        Role.API_SERVER: (API_SERVERS,),
        Role.ETCD_MAIN: main,
        Role.ETCD_EVENTS: events,
        Role.WORKER_IN_REGION: (WORKERS,),
    }


def ranges_of(cluster: Cluster, plan: AddressPlan, source: ArtefactSource) -> dict[Role, tuple[str, ...]]:
    """Role -> its addresses; none where nobody has the role."""
    subnets = region_subnets(cluster.spec)
    sites = {pool.site for pool in cluster.spec.pools.values() if pool.site}
    racks = [rack for site in sorted(sites) for rack in cluster.spec.sites[site].racks.values()]
    main, events = (_hosts(host.address for host in plan.etcd[role]) for role in ("main", "events"))
    return {
        Role.OPERATOR: tuple(map(str, cluster.spec.control_plane.operators)),
        Role.LOAD_BALANCER: _hosts(plan.balancers),
        Role.API_SERVER: (str(subnets.api_servers),),
        Role.ETCD_MAIN: main,
        Role.ETCD_EVENTS: events,
        Role.WORKER_IN_REGION: (str(subnets.workers),),
        Role.WORKER_AT_SITE: tuple(map(str, collapse_addresses(racks))),
        Role.SECRET_STORE: _hosts([endpoint_address(cluster)]),
        Role.ARTEFACT_MIRROR: _place_of(source.mirror),
        Role.REGISTRY: _place_of(source.registry),
    }


def _hosts(addresses: Iterable[IPv4Address]) -> tuple[str, ...]:
    return tuple(f"{address}/32" for address in addresses)


def _place_of(address: str | None) -> tuple[str, ...]:
    """Of a base URL or host:port. A rule knows no names, and upstream sites are anywhere."""
    host = (address or "").rpartition("//")[2].partition("/")[0].partition(":")[0]
    try:
        return (str(IPv4Network(IPv4Address(host))),)
    except AddressValueError:
        return (ANYWHERE,)


def _ways(
    flow: Flow, readers: Mapping[Role, tuple[str, ...]], ranges: Mapping[Role, tuple[str, ...]]
) -> Iterator[tuple[Role, _Way]]:
    """(role whose hosts a rule is for, way) of a flow."""
    source, destination = flow.source, flow.destination
    if not UNFILTERED.isdisjoint({source, destination}):
        return
    # Behind the load balancer's address are the API servers.
    taker = Role.API_SERVER if destination is Role.LOAD_BALANCER else destination
    if source is Role.LOAD_BALANCER:
        if API_PORT in flow.ports:
            yield taker, _Way(Direction.IN, "probes", (), PROBES)
    elif taker in readers and (source in readers or ranges.get(source)):
        peers = readers.get(source, ())
        yield taker, _Way(Direction.IN, _slug(source), peers, () if peers else ranges[source])
    if source in readers and ranges.get(destination):
        yield source, _Way(Direction.OUT, _slug(destination), (), ranges[destination])


def _known(way: _Way, ways: Iterable[tuple[_Way, Role]]) -> _Way:
    """The way to the same places under the name that it had first."""
    same = (
        each for each, _ in ways if (each.direction, each.peers, each.ranges) == (way.direction, way.peers, way.ranges)
    )
    return next(same, way)


def _sentences(of: Iterable[Mapping[Service, list[str]]]) -> str:
    return " ".join(dict.fromkeys(why for services in of for whys in services.values() for why in whys))


def _tens(
    way: _Way, services: tuple[Service, ...], roles: list[Role], readers: Mapping[Role, tuple[str, ...]], why: str
) -> Iterator[Rule]:
    """As many rules as the number of identities in one asks for."""
    targets = tuple(reader for role in roles for reader in readers[role])
    word = "from" if way.direction is Direction.IN else "to"
    name = "-".join((*map(_slug, roles), word, way.name))
    number = 0
    for own in _slices(targets):
        for peers in _slices(way.peers) or [()]:
            number += 1
            numbered = name if number == 1 else f"{name}-{number}"
            yield Rule(way.direction, numbered, own, peers, way.ranges, services, why)


def _slices(of: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [of[start : start + _MOST_IDENTITIES] for start in range(0, len(of), _MOST_IDENTITIES)]


def _slug(role: Role) -> str:
    return role.value.lower().replace(" ", "-")
