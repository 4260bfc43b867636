"""Who has which address on the cloud side, after the layout of `cluster.layout`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import get_args

from cluster import layout
from cluster.layout import API_SERVICE, DNS_SERVICE, Section, section_size, sections
from cluster.spec import Cluster, ClusterSpec, RoleName

ROLES: tuple[RoleName, ...] = get_args(RoleName)


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


def plan(cluster: Cluster) -> AddressPlan:
    """The address plan of a checked cluster. Equal specs give equal plans; zones are filled round robin."""
    spec, network = cluster.spec, cluster.spec.network
    hosts = {kind: _hosts(spec, kind, section) for kind, section in sections(spec).items()}
    main = hosts["etcd-main"]
    return AddressPlan(
        nodes=network.nodes,
        gateway=network.nodes[1],
        endpoint=network.nodes[section_size(network.nodes)],
        api_servers=hosts["api"],
        etcd={"main": main, "events": hosts.get("etcd-events", main[: spec.etcd.events.members])},
        service_ip=network.services[API_SERVICE],
        dns_ip=network.dns_ip or network.services[DNS_SERVICE],
    )


def node_ranges(cluster: Cluster) -> tuple[IPv4Network, ...]:
    """Where nodes have their addresses: every rack, and what is free on the cloud side where workers are.

    No address of the control plane is among them: who holds a certificate for one could pose as it.
    """
    spec = cluster.spec
    racks = [rack for site in spec.sites.values() for rack in site.racks.values()]
    return (*(layout.free(spec.network.nodes) if spec.cloud_workers else ()), *racks)


def _hosts(spec: ClusterSpec, kind: str, section: Section) -> tuple[HostAddress, ...]:
    zones = spec.control_plane.zones
    return tuple(
        HostAddress(f"{kind}-{index + 1}", str(zones[index % len(zones)]), spec.network.nodes[section.first + index])
        for index in range(section.count)
    )
