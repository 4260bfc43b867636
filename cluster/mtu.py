"""The whole chain of MTUs: which links pod packets cross, and what is left for a pod.

A node's flannel has one MTU for all its pods, so the narrowest path decides. Paths follow from the
sites and pools that the spec declares, not from the hosts they hold today: adding a host must not
change the MTU of running pods. All numbers are bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from cluster.document import Where, show
from cluster.network import FlannelBackend
from cluster.sites import Site
from cluster.spec import ClusterSpec
from cluster.vpn import tunnel_mtu

VXLAN_OVERHEAD = 50
"""Outer IPv4 (20), UDP (8), VXLAN (8) and the inner Ethernet header (14): RFC 7348, section 5."""


@dataclass(frozen=True)
class Link:
    """One stretch of a path. `where` is the place of its MTU in the spec."""

    where: Where
    mtu: int

    def __str__(self) -> str:
        return f"{show(self.where)} {self.mtu}"


@dataclass(frozen=True)
class Path:
    """A way that pod packets travel, and the bytes that encapsulation takes on it."""

    name: str
    links: tuple[Link, ...]
    overhead: int

    @property
    def narrowest(self) -> Link:
        return min(self.links, key=lambda link: link.mtu)

    @property
    def room(self) -> int:
        """The largest pod packet that crosses this path whole."""
        return self.narrowest.mtu - self.overhead

    def __str__(self) -> str:
        less = f" - {self.overhead} for VXLAN = {self.room}" if self.overhead else ""
        return f"{self.name}: {', '.join(map(str, self.links))}: {self.narrowest.mtu}{less}"


def pod_mtu(spec: ClusterSpec) -> int:
    """MTU of pod interfaces under vxlan: `network.flannel.mtu`, or the largest that fits every path."""
    return spec.network.flannel.mtu or tightest(spec).room


def tightest(spec: ClusterSpec) -> Path:
    """The path that holds all others down."""
    return min(paths(spec), key=lambda path: path.room)


def paths(spec: ClusterSpec) -> tuple[Path, ...]:
    """Every path on which pod packets can travel.

    Between hosts of one rack flannel's direct routing needs no encapsulation, but flannel falls back
    to VXLAN without a word where it finds no direct route, so room for it is kept there as well.
    """
    overhead = VXLAN_OVERHEAD if spec.network.flannel.backend is FlannelBackend.VXLAN else 0
    return (*_node_paths(spec, overhead), *_api_paths(spec))


def carried(spec: ClusterSpec, site: str) -> dict[str, Link]:
    """Where a site's host sends packets -> the narrowest link on the way there, without pods' encapsulation."""
    own = spec.sites[site]
    ways = {"rack": (_link(site, own),), "site": _uplinked(site, own), "API": _to_cloud(spec, site, own)}
    return {name: min(links, key=lambda link: link.mtu) for name, links in ways.items()}


def _node_paths(spec: ClusterSpec, overhead: int) -> Iterator[Path]:
    """Between nodes: inside each rack, between racks, sites, and workers in the cloud."""
    for name, site in spec.sites.items():
        yield Path(f"inside a rack of {name}", (_link(name, site),), overhead)
        if len(site.racks) > 1:
            yield Path(f"between racks of {name}", _uplinked(name, site), overhead)
    for (one, site), (other, second) in combinations(spec.sites.items(), 2):
        yield Path(f"between {one} and {other}", _uplinked(one, site) + _uplinked(other, second), overhead)
    if not spec.sites or any(pool.site is None for pool in spec.pools.values()):
        yield Path("between workers in the cloud", (_cloud(spec),), overhead)
        for name, site in spec.sites.items():
            yield Path(f"between {name} and workers in the cloud", _to_cloud(spec, name, site), overhead)


def _api_paths(spec: ClusterSpec) -> Iterator[Path]:
    """From pods to the API servers: through the node's address translation, never through VXLAN."""
    for name, site in spec.sites.items():
        yield Path(f"from pods in {name} to the API servers", _to_cloud(spec, name, site), 0)


def _link(name: str, site: Site) -> Link:
    return Link(("sites", name, "link_mtu"), site.link_mtu)


def _uplinked(name: str, site: Site) -> tuple[Link, Link]:
    return (_link(name, site), Link(("sites", name, "uplink_mtu"), site.uplink_mtu))


def _to_cloud(spec: ClusterSpec, name: str, site: Site) -> tuple[Link, ...]:
    tunnel = (Link(("sites", name, "vpn"), tunnel_mtu(spec, site.vpn)),) if site.vpn else ()
    return (*_uplinked(name, site), *tunnel, _cloud(spec))


def _cloud(spec: ClusterSpec) -> Link:
    return Link(("network", "link_mtu"), spec.network.link_mtu)
