"""Subnets where each lies in one zone, as on AWS, and the addresses of etcd's hosts in them.

There the sections of `cluster.layout` do not do: neighbours in a section stand in different zones. So
`network.nodes` is cut into eighths. The first is the control plane's, with 64 addresses for each zone; of
the others each zone has one for its workers:

    /16: .0.0/27  .0.32/28  .0.48/28  .32.0/19   first zone: API servers, etcd, public, workers
         .0.64/27 .0.96/28  .0.112/28 .64.0/19   second zone

Zones count by their place in the spec and hosts by their number: a zone more moves no subnet, and a member more
moves no host. A zone more moves hosts, because they fill zones in turn. No address of the control plane is in
`network.addresses.node_ranges`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network

from cluster.layout import sections
from cluster.spec import Cluster, RoleName
from network.addresses import HostAddress

_EIGHTH = 3
"""Bits that number the eighths."""
MOST_ZONES = 6
WIDEST, NARROWEST = 16, 20
"""Prefix lengths of network.nodes: AWS takes no VPC wider than a /16, and in an eighth of a /20 there is room for
the control plane in six zones."""
_OF_ZONE = 26

# AWS keeps the first four addresses of a subnet and the last one.
_MEMBERS = {"etcd-main": range(4, 10), "etcd-events": range(10, 15)}
"""Kind of host -> its numbers in the etcd subnet of each zone."""


@dataclass(frozen=True)
class ZoneSubnets:
    """The subnets of one zone. `zone` is the cloud's name of it; `public` is for the NAT gateway alone."""

    zone: str
    api_servers: IPv4Network
    etcd: IPv4Network
    public: IPv4Network
    workers: IPv4Network

    def all(self) -> tuple[IPv4Network, ...]:
        return (self.api_servers, self.etcd, self.public, self.workers)


def zone_subnets(cluster: Cluster) -> tuple[ZoneSubnets, ...]:
    """The subnets of each zone, in the order of the spec. ValueError where `network.nodes` has no room for them."""
    nodes, zones = cluster.spec.network.nodes, cluster.spec.control_plane.zones
    if not WIDEST <= nodes.prefixlen <= NARROWEST:
        raise ValueError(f"network.nodes {nodes} can't be cut into subnets of zones; use a /{WIDEST} to a /{NARROWEST}")
    if len(zones) > MOST_ZONES:
        raise ValueError(
            f"control_plane.zones names {len(zones)} zones; network.nodes is cut for {MOST_ZONES}: name no more"
        )
    control, *workers = nodes.subnets(_EIGHTH)
    own = control.subnets(new_prefix=_OF_ZONE)
    return tuple(_zone(str(zone), *both) for zone, *both in zip(zones, own, workers, strict=False))


def etcd_hosts(cluster: Cluster) -> Mapping[RoleName, tuple[HostAddress, ...]]:
    """`AddressPlan.etcd` in the subnets of the zones. ValueError where a zone has no room for its hosts."""
    zones = zone_subnets(cluster)
    hosts = {
        kind: tuple(_host(kind, index, zones) for index in range(section.count))
        for kind, section in sections(cluster.spec).items()
        if kind in _MEMBERS
    }
    main = hosts["etcd-main"]
    return {"main": main, "events": hosts.get("etcd-events", main[: cluster.spec.etcd.events.members])}


def _zone(zone: str, control: IPv4Network, workers: IPv4Network) -> ZoneSubnets:
    api_servers, rest = control.subnets()
    etcd, public = rest.subnets()
    return ZoneSubnets(zone, api_servers, etcd, public, workers)


def _host(kind: str, index: int, zones: tuple[ZoneSubnets, ...]) -> HostAddress:
    numbers, zone = _MEMBERS[kind], zones[index % len(zones)]
    if index // len(zones) >= len(numbers):
        raise ValueError(
            f"{zone.zone} has {len(numbers)} addresses for hosts of {kind}, and none for {kind}-{index + 1}; "
            "name more of control_plane.zones, or use fewer members"
        )
    return HostAddress(f"{kind}-{index + 1}", zone.zone, zone.etcd[numbers[index // len(zones)]])
