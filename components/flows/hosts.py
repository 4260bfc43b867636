"""The table as workers at sites are told it: variables of role firewall. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network, collapse_addresses
from typing import Any

from cluster.spec import Cluster, ClusterSpec
from cluster.subnets import worker_ranges
from components.flows.flow import Flow, Protocol, Role, into, spans
from components.flows.table import CEPH, PORTS_OF_SERVICES, SSH_LOGIN, flows

ANYBODY: tuple[str, ...] = ()
"""Whom a rule without addresses lets in."""


def of_sites(cluster: Cluster) -> dict[str, Any]:
    """The same for workers of all sites; nothing where there are none."""
    table, places = flows(cluster), _places(cluster.spec)
    taken, second_ports = into(table, Role.WORKER_AT_SITE), _storage(cluster.spec)
    if not taken:
        return {}
    return {
        "firewall_rules": [rule for flow in taken for rule in _rules(flow, places, second_ports)],
        "firewall_pod_range": str(cluster.spec.network.pods),
        "firewall_pod_sources": list(
            _apart(tuple(place for flow in into(table, Role.POD) for place in places[flow.source]))
        ),
    }


def _rules(flow: Flow, places: dict[Role, tuple[str, ...]], second_ports: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """A flow whose source has no addresses has no rule, but for the operator's login: nobody may be locked out."""
    found = _apart((*places.get(flow.source, ()), *(second_ports if flow.why == CEPH else ())))
    login, services = flow.why == SSH_LOGIN, flow.why == PORTS_OF_SERVICES
    if found or login:
        yield {
            "from": list(found or ANYBODY),
            "protocol": flow.protocol.value,
            "ports": list(spans(flow.ports)),
            "pods": flow.source is Role.WORKER_AT_SITE and (services or flow.protocol is Protocol.TCP),
            "services": services,
            "login": login,
            "why": flow.why,
        }


def _apart(places: tuple[str, ...]) -> tuple[str, ...]:
    """nft takes no set whose ranges overlap."""
    return tuple(map(str, collapse_addresses(map(IPv4Network, places))))


def _storage(spec: ClusterSpec) -> tuple[str, ...]:
    """Ranges that storage hosts have for Ceph beside those of their racks."""
    own = [site.ceph.networks for site in spec.sites.values() if site.ceph]
    return tuple(str(each) for networks in own for each in (*networks.public, *networks.cluster))


def _places(spec: ClusterSpec) -> dict[Role, tuple[str, ...]]:
    sites = {pool.site for pool in spec.pools.values() if pool.site}
    racks = [rack for site in sorted(sites) for rack in spec.sites[site].racks.values()]
    return {
        Role.OPERATOR: tuple(map(str, spec.control_plane.operators)),
        Role.SERVICE_CLIENT: tuple(map(str, spec.network.node_ports.outside)),
        Role.WORKER_AT_SITE: tuple(map(str, racks)),
        Role.WORKER_IN_REGION: tuple(map(str, worker_ranges(spec))),
        Role.POD: (str(spec.network.pods),),
    }
