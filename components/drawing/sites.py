"""Sites with their racks, even many."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.pools import Host
from cluster.sites import Site
from cluster.spec import Cluster
from components.drawing.cards import Band, Card
from components.drawing.fabric import fabric_band
from components.drawing.pools import site_cards
from components.drawing.storage import ceph_band
from components.flows.flow import Role

_CARDS = 8
"""Largest number of racks of a site that are shown with their hosts; more are shown as cells."""
_CELLS = 96
"""Largest number of cells; with more racks, several share a cell."""
_HOSTS = 4
"""Number of hosts of a rack that are shown by name."""


def site_bands(cluster: Cluster, among: str) -> Iterator[Band]:
    """Yield the bands of each site: its pools, racks, fabric and Ceph. among: the ports of flows among workers at sites."""
    for name, site in cluster.spec.sites.items():
        cards = tuple(site_cards(cluster, name))
        role = Role.WORKER_AT_SITE if cards else None
        facts = _facts(site, among if cards else "")
        yield Band(f"site-{name}", f"Site {name}", facts, "workers", role, cards, in_region=False)
        yield _rack_band(cluster, name, site)
        if site.roce:
            yield fabric_band(cluster, name, site.roce)
        if site.ceph:
            yield ceph_band(cluster, name, site.ceph)


def _facts(site: Site, among: str) -> str:
    facts = [
        "joined by VPN" if site.vpn else "reaches the region by its own line",
        f"links {site.link_mtu}, uplinks {site.uplink_mtu} bytes",
        f"among themselves {among}" if among else "",
    ]
    return " · ".join(filter(None, facts))


def _rack_band(cluster: Cluster, name: str, site: Site) -> Band:
    by_rack: dict[str, list[Host]] = {rack: [] for rack in site.racks}
    pools = [pool for pool, chosen in cluster.spec.pools.items() if chosen.site == name]
    for host in (host for pool in pools for host in cluster.hosts.get(pool, ())):
        by_rack[host.rack].append(host)
    facts = f"{_count(len(by_rack), 'rack')}, {_count(sum(map(len, by_rack.values())), 'machine')}"
    cards, cells = tuple(_racks(name, site, by_rack)), len(site.racks) > _CARDS
    return Band(f"racks-{name}", f"Racks of {name}", facts, "workers", None, cards, in_region=False, cells=cells)


def _racks(name: str, site: Site, by_rack: dict[str, list[Host]]) -> Iterator[Card]:
    for group in _shares(site):
        hosts = [host for rack in group for host in by_rack[rack]]
        ranges = ", ".join(str(site.racks[rack]) for rack in group)
        if len(site.racks) <= _CARDS:
            shown = [f"{host.name} {host.address}" for host in hosts[:_HOSTS]]
            rest = [f"and {len(hosts) - _HOSTS} more"] if len(hosts) > _HOSTS else []
            yield Card(_card(name, group), f"rack {group[0]}", (ranges, *shown, *rest))
        else:
            ends = group[0] if len(group) == 1 else f"{group[0]}–{group[-1]}"
            yield Card(_card(name, group), ends, (_count(len(hosts), "host"),), about=ranges)


def rack_cards(name: str, site: Site) -> dict[str, str]:
    """Return rack -> the ID of its card."""
    return {rack: _card(name, group) for group in _shares(site) for rack in group}


def _shares(site: Site) -> Iterator[list[str]]:
    """Yield the groups of racks that share a card."""
    racks = list(site.racks)
    share = max(-(-len(racks) // _CELLS), 1)
    return (racks[start : start + share] for start in range(0, len(racks), share))


def _card(site: str, racks: list[str]) -> str:
    return f"rack-{site}-{racks[0]}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
