"""The table for workers at sites: variables of role firewall. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network, collapse_addresses
from typing import Any

from cluster.spec import Cluster, ClusterSpec
from cluster.subnets import worker_ranges
from components.flows.flow import Flow, Protocol, Role, into, spans
from components.flows.table import CEPH, PORTS_OF_SERVICES, SSH_LOGIN, flows

ANYBODY: tuple[str, ...] = ()
"""The addresses of a rule that admits everybody."""


def of_sites(cluster: Cluster) -> dict[str, Any]:
    """Return the variables, which are the same for workers of all sites; none without such workers."""
    table, places = flows(cluster), _addresses(cluster.spec)
    incoming, second_ports = into(table, Role.WORKER_AT_SITE), _storage_networks(cluster.spec)
    if not incoming:
        return {}
    return {
        "firewall_rules": [rule for flow in incoming for rule in _rules(flow, places, second_ports)],
        "firewall_pod_range": str(cluster.spec.network.pods),
        "firewall_pod_sources": list(
            _without_overlap(tuple(place for flow in into(table, Role.POD) for place in places[flow.source]))
        ),
    }


def _rules(flow: Flow, places: dict[Role, tuple[str, ...]], second_ports: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Yield the rule of a flow. If its source has no addresses, there is none, except for SSH: no operator may be locked out."""
    sources = _without_overlap((*places.get(flow.source, ()), *(second_ports if flow.why == CEPH else ())))
    login, services = flow.why == SSH_LOGIN, flow.why == PORTS_OF_SERVICES
    if sources or login:
        yield {
            "from": list(sources or ANYBODY),
            "protocol": flow.protocol.value,
            "ports": list(spans(flow.ports)),
            "pods": flow.source is Role.WORKER_AT_SITE and (services or flow.protocol is Protocol.TCP),
            "services": services,
            "login": login,
            "why": flow.why,
        }


def _without_overlap(places: tuple[str, ...]) -> tuple[str, ...]:
    """Merge overlapping ranges, because nft rejects a set with overlaps."""
    return tuple(map(str, collapse_addresses(map(IPv4Network, places))))


def _storage_networks(spec: ClusterSpec) -> tuple[str, ...]:
    """Return the ranges that storage hosts use for Ceph in addition to those of their racks."""
    of_ceph = [site.ceph.networks for site in spec.sites.values() if site.ceph]
    return tuple(str(network) for networks in of_ceph for network in (*networks.public, *networks.cluster))


def _addresses(spec: ClusterSpec) -> dict[Role, tuple[str, ...]]:
    sites = {pool.site for pool in spec.pools.values() if pool.site}
    racks = [rack for site in sorted(sites) for rack in spec.sites[site].racks.values()]
    return {
        Role.OPERATOR: tuple(map(str, spec.control_plane.operators)),
        Role.SERVICE_CLIENT: tuple(map(str, spec.network.node_ports.outside)),
        Role.WORKER_AT_SITE: tuple(map(str, racks)),
        Role.WORKER_IN_REGION: tuple(map(str, worker_ranges(spec))),
        Role.POD: (str(spec.network.pods),),
    }
