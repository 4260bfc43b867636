"""Addresses on the cloud side: from `cluster.subnets` in a cloud, from `cluster.layout` in the lab."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import get_args

from cluster.layout import API_SERVICE, DNS_SERVICE, counts, member_zones, section_size, sections
from cluster.spec import Cluster, ClusterSpec, RoleName
from cluster.subnets import balancers, member_address

ROLES: tuple[RoleName, ...] = get_args(RoleName)


@dataclass(frozen=True)
class HostAddress:
    """A host on the cloud side. zone: the cloud's name of the zone."""

    name: str
    zone: str
    address: IPv4Address


@dataclass(frozen=True)
class AddressPlan:
    """The addresses of the cloud side, and the fixed addresses in the service range."""

    nodes: IPv4Network
    endpoint: str
    """The API's name in the private zone `zone`, or its address in the lab. Everything except API servers uses it."""
    zone: str | None
    """The cluster's private DNS zone; None in the lab."""
    balancers: tuple[IPv4Address, ...]
    """Addresses of the load balancer in front of the API servers: on AWS one per zone, in the spec's order, elsewhere one."""
    api_servers: tuple[HostAddress, ...]
    """Only in the lab. In a cloud an instance group creates them, and the cloud assigns their addresses."""
    etcd: Mapping[RoleName, tuple[HostAddress, ...]]
    """Role -> hosts of its members, in the order of the members. If events runs on main's hosts, `etcd["events"]` has
    those hosts."""
    service_ip: IPv4Address
    """The first address of the service range: the API's address for pods."""
    dns_ip: IPv4Address

    def hosts(self) -> tuple[HostAddress, ...]:
        """Return every host with a fixed address once: API servers, then the members' hosts by role."""
        hosts = [*self.api_servers, *(host for role in self.etcd.values() for host in role)]
        return tuple(dict.fromkeys(hosts))


def plan(cluster: Cluster) -> AddressPlan:
    """Return the address plan of a checked cluster. Equal specs give equal plans."""
    spec, network = cluster.spec, cluster.spec.network
    hosts = _lab_hosts(spec) if cluster.is_lab else _cloud_hosts(spec)
    main = hosts["etcd-main"]
    zone = None if cluster.is_lab else f"{cluster.name}.internal"
    addresses = (network.nodes[section_size(network.nodes)],) if cluster.is_lab else balancers(spec)
    return AddressPlan(
        nodes=network.nodes,
        endpoint=f"api.{zone}" if zone else str(addresses[0]),
        zone=zone,
        balancers=addresses,
        api_servers=hosts.get("api", ()),
        etcd={"main": main, "events": hosts.get("etcd-events", main[: spec.etcd.events.members])},
        service_ip=network.services[API_SERVICE],
        dns_ip=network.dns_ip or network.services[DNS_SERVICE],
    )


def _lab_hosts(spec: ClusterSpec) -> dict[str, tuple[HostAddress, ...]]:
    everywhere = tuple(str(zone) for zone in spec.control_plane.zones)
    return {
        kind: tuple(
            _host(
                kind,
                index,
                everywhere if kind == "api" else member_zones(spec),
                spec.network.nodes[section.first + index],
            )
            for index in range(section.count)
        )
        for kind, section in sections(spec).items()
    }


def _cloud_hosts(spec: ClusterSpec) -> dict[str, tuple[HostAddress, ...]]:
    zones = member_zones(spec)
    return {
        kind: tuple(_host(kind, index, zones, member_address(spec, kind, index)) for index in range(count))
        for kind, (_, count) in counts(spec).items()
        if kind != "api"
    }


def _host(kind: str, index: int, zones: tuple[str, ...], address: IPv4Address) -> HostAddress:
    return HostAddress(f"{kind}-{index + 1}", zones[index % len(zones)], address)
