"""What the firewalls of all clouds have in common: the roles that they do not filter, and addresses that no cloud decides."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import AddressValueError, IPv4Address, IPv4Network, collapse_addresses

from cluster.spec import Cluster
from cluster.subnets import worker_ranges
from components.flows.flow import Role
from network.addresses import AddressPlan

UNFILTERED = frozenset({Role.RESOLVER, Role.TIME_SERVER, Role.METADATA})
"""Roles whose traffic passes the firewall of every cloud, or never reaches it."""


def slug(role: Role) -> str:
    """Return a role as part of a name."""
    return role.value.lower().replace(" ", "-")


def ranges_of_roles(cluster: Cluster, plan: AddressPlan) -> dict[Role, tuple[IPv4Network, ...]]:
    """Return the addresses of roles that follow from spec and plan alone; none if nothing has the role."""
    plane = cluster.spec.control_plane
    sites = {pool.site for pool in cluster.spec.pools.values() if pool.site}
    racks = [rack for site in sorted(sites) for rack in cluster.spec.sites[site].racks.values()]
    return {
        Role.OPERATOR: plane.operators,
        Role.PUBLIC_OPERATOR: plane.public.operators if plane.public else (),
        Role.SERVICE_CLIENT: tuple(collapse_addresses(cluster.spec.network.node_ports.outside)),
        Role.ETCD_MAIN: single_addresses(host.address for host in plan.etcd["main"]),
        Role.ETCD_EVENTS: single_addresses(host.address for host in plan.etcd["events"]),
        Role.WORKER_IN_REGION: worker_ranges(cluster.spec),
        Role.WORKER_AT_SITE: tuple(collapse_addresses(racks)),
    }


def single_addresses(addresses: Iterable[IPv4Address]) -> tuple[IPv4Network, ...]:
    """Return a range of one address for each."""
    return tuple(map(IPv4Network, addresses))


def range_of_server(server: str) -> IPv4Network | None:
    """Return the range of a base URL or host:port; None for a name: firewalls of clouds can't contain names."""
    host = server.rpartition("//")[2].partition("/")[0].partition(":")[0]
    try:
        return IPv4Network(IPv4Address(host))
    except AddressValueError:
        return None
