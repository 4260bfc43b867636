"""How `network.nodes` is cut into subnets in a cloud, and the addresses of etcd's hosts in them.

The first eighth is for the control plane. An AWS subnet is in one zone, so on AWS each zone has 64 addresses of
that eighth, and one of the other eighths for its workers:

    /16: .0.0/27  .0.32/28  .0.48/28  .32.0/19   first zone: API servers, etcd, public, workers
         .0.64/27 .0.96/28  .0.112/28 .64.0/19   second zone

On Azure and Google Cloud a subnet spans the zones:

    /16: .0.0/26  .0.64/26  .0.128/26  .0.192/26  .128.0/17   API servers, etcd, endpoints, gateway, workers

Addresses follow from the zone's index in the spec and the host's number: an additional zone moves no subnet, and an
additional member or a fourth zone moves no host (`cluster.layout.member_zones`).
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from cluster.layout import member_zones
from cluster.spec import Cloud, ClusterSpec

_EIGHTH = 3
"""Bits to number eighths."""
MOST_ZONES = 6
WIDEST, NARROWEST = 16, 20
"""Prefix lengths of network.nodes: AWS allows no VPC wider than a /16, and an eighth of a /20 has room for the
control plane in six zones."""
_OF_ROLE = 26

# AWS and Azure reserve the first four addresses of a subnet and the last one, Google Cloud the first two and last two.
_BALANCER = 4
_FIRST = 4
_MEMBERS_IN_ZONE = {"etcd-main": range(_FIRST, 10), "etcd-events": range(10, 15)}
_MEMBERS_IN_REGION = {"etcd-main": range(_FIRST, 24), "etcd-events": range(24, 44)}
"""Kind of host -> its indices in an etcd subnet."""
_API_SERVERS = 9
"""Most API servers in a zone of AWS: of 27 addresses the load balancer and endpoints need up to five, and during a roll
there may be two of every host. In other clouds the region's subnet has room for three times as many."""


@dataclass(frozen=True)
class ZoneSubnets:
    """The subnets of one zone of AWS. zone: the cloud's name of it. public: only for the load balancer of a public
    endpoint."""

    zone: str
    api_servers: IPv4Network
    etcd: IPv4Network
    public: IPv4Network
    workers: IPv4Network

    @property
    def balancer(self) -> IPv4Address:
        """Address of the load balancer in this zone."""
        return self.api_servers[_BALANCER]

    def all(self) -> tuple[IPv4Network, ...]:
        return (self.api_servers, self.etcd, self.public, self.workers)


@dataclass(frozen=True)
class RegionSubnets:
    """The subnets of a region of Azure or Google Cloud. endpoints: for endpoints of the cloud's own services.
    gateway: for the VPN gateway."""

    api_servers: IPv4Network
    etcd: IPv4Network
    endpoints: IPv4Network
    gateway: IPv4Network
    workers: IPv4Network

    @property
    def balancer(self) -> IPv4Address:
        """Address of the load balancer."""
        return self.api_servers[_BALANCER]

    def all(self) -> tuple[IPv4Network, ...]:
        return (self.api_servers, self.etcd, self.endpoints, self.gateway, self.workers)


def zone_subnets(spec: ClusterSpec) -> tuple[ZoneSubnets, ...]:
    """Return the subnets of each zone of a checked spec, in its order."""
    control, *workers = spec.network.nodes.subnets(_EIGHTH)
    own = control.subnets(new_prefix=_OF_ROLE)
    return tuple(_zone(str(zone), *both) for zone, *both in zip(spec.control_plane.zones, own, workers, strict=False))


def region_subnets(spec: ClusterSpec) -> RegionSubnets:
    """Return the subnets of a checked spec's region."""
    _, workers = spec.network.nodes.subnets()
    api_servers, etcd, endpoints, gateway, *_ = spec.network.nodes.subnets(new_prefix=_OF_ROLE)
    return RegionSubnets(api_servers, etcd, endpoints, gateway, workers)


def balancers(spec: ClusterSpec) -> tuple[IPv4Address, ...]:
    """Return the load balancer's addresses: one per zone on AWS, one elsewhere."""
    if spec.control_plane.cloud is Cloud.AWS:
        return tuple(zone.balancer for zone in zone_subnets(spec))
    return (region_subnets(spec).balancer,)


def worker_ranges(spec: ClusterSpec) -> tuple[IPv4Network, ...]:
    """Return the ranges of workers in the region, which contain no address of the control plane.

    In a lab this is the upper half of network.nodes.
    """
    if spec.control_plane.cloud is Cloud.LAB:
        return (list(spec.network.nodes.subnets())[1],)
    if spec.control_plane.cloud is Cloud.AWS:
        return tuple(zone.workers for zone in zone_subnets(spec))
    return (region_subnets(spec).workers,)


def most_api_servers(spec: ClusterSpec) -> int:
    """Return how many API servers the subnets have room for."""
    return _API_SERVERS * (len(spec.control_plane.zones) if spec.control_plane.cloud is Cloud.AWS else 3)


def most_members(spec: ClusterSpec, kind: str) -> int:
    """Return how many hosts of a kind of etcd the subnets have room for."""
    if spec.control_plane.cloud is Cloud.AWS:
        return len(_MEMBERS_IN_ZONE[kind]) * len(member_zones(spec))
    return len(_MEMBERS_IN_REGION[kind])


def member_address(spec: ClusterSpec, kind: str, index: int) -> IPv4Address:
    """Return the address of an etcd host by kind and index from 0. Raises IndexError from `most_members` on."""
    if spec.control_plane.cloud is not Cloud.AWS:
        return region_subnets(spec).etcd[_MEMBERS_IN_REGION[kind][index]]
    turn, zone = divmod(index, len(member_zones(spec)))
    return zone_subnets(spec)[zone].etcd[_MEMBERS_IN_ZONE[kind][turn]]


def _zone(zone: str, control: IPv4Network, workers: IPv4Network) -> ZoneSubnets:
    api_servers, rest = control.subnets()
    etcd, public = rest.subnets()
    return ZoneSubnets(zone, api_servers, etcd, public, workers)
