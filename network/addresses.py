"""Who has which address in `network.nodes`, the range of the cloud side.

The layout depends on the length of the range alone, never on how many hosts there are: adding an
API server or a member moves nobody. The range is cut into sections of `section_size` addresses:

    /24: .1 gateway, .10 endpoint, .11-.20 API servers, .21-.30 etcd main, .31-.40 etcd events
    /16: .0.1 gateway, .0.100 endpoint, then 100 addresses each

What follows the sections is free for cloud workers and is never handed out here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import get_args

from cluster.spec import Cluster, EtcdHosts, RoleName

ROLES: tuple[RoleName, ...] = get_args(RoleName)

# Azure and AWS keep the first four addresses of a subnet and the last one, Google Cloud the first
# and the last two; every section starts well after them.
_SMALLEST_SECTION = 10
_LARGEST_SECTION = 100


@dataclass(frozen=True)
class HostAddress:
    """One cloud-side host. `zone` is the cloud's name of the zone, as text."""

    name: str
    zone: str
    address: IPv4Address


@dataclass(frozen=True)
class AddressPlan:
    """The addresses of the cloud side, and the fixed addresses inside the range of services."""

    nodes: IPv4Network
    gateway: IPv4Address
    endpoint: IPv4Address
    """The load balancer in front of the API servers."""
    api_servers: tuple[HostAddress, ...]
    etcd: Mapping[str, tuple[HostAddress, ...]]
    """Role -> hosts of its members, in the order of the members. Where events runs on main's
    hosts, `etcd["events"]` names those hosts."""
    service_ip: IPv4Address
    """The first address of services: the API as pods see it."""
    dns_ip: IPv4Address

    def hosts(self) -> tuple[HostAddress, ...]:
        """Every host once: API servers, then the members' hosts by role."""
        everyone = [*self.api_servers, *(host for role in self.etcd.values() for host in role)]
        return tuple(dict.fromkeys(everyone))


def section_size(nodes: IPv4Network) -> int:
    """Addresses kept for each kind of host: 10 in a /24 or smaller, growing with the range to 100."""
    return min(_LARGEST_SECTION, max(_SMALLEST_SECTION, _SMALLEST_SECTION * nodes.num_addresses // 256))


def plan(cluster: Cluster) -> AddressPlan:
    """The address plan. Equal specs give equal plans; zones are filled round robin.

    Raises ValueError with the rule and the way out when a host or the DNS service has no room.
    """
    network = cluster.spec.network
    etcd = cluster.spec.etcd
    main = _section(cluster, 2, "etcd-main", etcd.main.members, "etcd.main.members")
    if etcd.main.hosts is EtcdHosts.MAIN:
        raise ValueError("etcd.main.hosts is 'main': only events can share main's hosts; write dedicated")
    if etcd.events.hosts is EtcdHosts.MAIN:
        events = _shared(main, etcd.events.members)
    else:
        events = _section(cluster, 3, "etcd-events", etcd.events.members, "etcd.events.members")
    return AddressPlan(
        nodes=network.nodes,
        gateway=network.nodes[1],
        endpoint=network.nodes[section_size(network.nodes)],
        api_servers=_section(cluster, 1, "api", cluster.spec.control_plane.api_servers, "control_plane.api_servers"),
        etcd={"main": main, "events": events},
        service_ip=_service_address(cluster, 1),
        dns_ip=network.dns_ip or _service_address(cluster, 10),
    )


def _section(cluster: Cluster, number: int, prefix: str, count: int, path: str) -> tuple[HostAddress, ...]:
    nodes = cluster.spec.network.nodes
    size = section_size(nodes)
    first = number * size + 1
    if count > size:
        raise ValueError(
            f"{path} is {count}, but network.nodes {nodes} keeps {size} addresses for them; "
            f"use {size} or fewer, or a larger network.nodes (a /16 keeps {_LARGEST_SECTION})"
        )
    if first + count > nodes.num_addresses - 1:
        raise ValueError(
            f"network.nodes {nodes} has no room for {prefix}-{count}: {path} starts at address {first} of the "
            f"range, which has {nodes.num_addresses}; use a /24 or larger"
        )
    zones = cluster.spec.control_plane.zones
    return tuple(
        HostAddress(f"{prefix}-{index + 1}", str(zones[index % len(zones)]), nodes[first + index])
        for index in range(count)
    )


def _shared(main: tuple[HostAddress, ...], count: int) -> tuple[HostAddress, ...]:
    if count > len(main):
        raise ValueError(
            f"etcd.events has {count} members on the hosts of main, which has {len(main)}; "
            f"use {len(main)} or fewer, or events.hosts: dedicated"
        )
    return main[:count]


def _service_address(cluster: Cluster, index: int) -> IPv4Address:
    services = cluster.spec.network.services
    if index >= services.num_addresses - 1:
        raise ValueError(
            f"network.services {services} has {services.num_addresses} addresses and no address number {index}; "
            "use a /16, or at least a /24"
        )
    return services[index]
