"""MTUs along all paths of pod packets, and the MTU left for pods.

flannel has one MTU for all pods of a node, so the path with the least room decides. Paths follow from the
sites and pools that the spec declares, not from their current hosts: adding a host must not
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
class PathSection:
    """One section of a path. where: where the spec has its MTU."""

    where: Where
    mtu: int

    def __str__(self) -> str:
        return f"{show(self.where)} {self.mtu}"


@dataclass(frozen=True)
class Path:
    """A path of pod packets, and the bytes that encapsulation takes on it."""

    name: str
    links: tuple[PathSection, ...]
    overhead: int

    @property
    def narrowest(self) -> PathSection:
        return min(self.links, key=lambda link: link.mtu)

    @property
    def room(self) -> int:
        """The largest pod packet that fits this path unfragmented."""
        return self.narrowest.mtu - self.overhead

    def __str__(self) -> str:
        less = f" - {self.overhead} for VXLAN = {self.room}" if self.overhead else ""
        return f"{self.name}: {', '.join(map(str, self.links))}: {self.narrowest.mtu}{less}"


def pod_mtu(spec: ClusterSpec) -> int:
    """Return the MTU of pod interfaces under vxlan: `network.flannel.mtu`, or the largest that fits every path."""
    return spec.network.flannel.mtu or tightest(spec).room


def tightest(spec: ClusterSpec) -> Path:
    """Return the path with the least room, which limits all others."""
    return min(paths(spec), key=lambda path: path.room)


def paths(spec: ClusterSpec) -> tuple[Path, ...]:
    """Return every path that pod packets can take.

    Between hosts of one rack flannel's direct routing needs no encapsulation. But flannel silently falls back
    to VXLAN if it finds no direct route, so these paths have room for it too.
    """
    overhead = VXLAN_OVERHEAD if spec.network.flannel.backend is FlannelBackend.VXLAN else 0
    return (*_node_paths(spec, overhead), *_api_paths(spec))


def carried(spec: ClusterSpec, site: str) -> dict[str, PathSection]:
    """Map each destination of a site's hosts to the narrowest link on the way, without encapsulation of pods."""
    own = spec.sites[site]
    ways = {"rack": (_link(site, own),), "site": _uplinked(site, own), "API": _to_cloud(spec, site, own)}
    return {name: min(links, key=lambda link: link.mtu) for name, links in ways.items()}


def _node_paths(spec: ClusterSpec, overhead: int) -> Iterator[Path]:
    """Yield paths between nodes: inside each rack, between racks, sites, and workers in the cloud."""
    for name, site in spec.sites.items():
        yield Path(f"inside a rack of {name}", (_link(name, site),), overhead)
        if len(site.racks) > 1:
            yield Path(f"between racks of {name}", _uplinked(name, site), overhead)
    for (name, site), (other, other_site) in combinations(spec.sites.items(), 2):
        yield Path(f"between {name} and {other}", _uplinked(name, site) + _uplinked(other, other_site), overhead)
    if not spec.sites or any(pool.site is None for pool in spec.pools.values()):
        yield Path("between workers in the cloud", (_cloud(spec),), overhead)
        for name, site in spec.sites.items():
            yield Path(f"between {name} and workers in the cloud", _to_cloud(spec, name, site), overhead)


def _api_paths(spec: ClusterSpec) -> Iterator[Path]:
    """Yield paths from pods to the API servers: through the node's address translation, never through VXLAN."""
    for name, site in spec.sites.items():
        yield Path(f"from pods in {name} to the API servers", _to_cloud(spec, name, site), 0)


def _link(name: str, site: Site) -> PathSection:
    return PathSection(("sites", name, "link_mtu"), site.link_mtu)


def _uplinked(name: str, site: Site) -> tuple[PathSection, PathSection]:
    return (_link(name, site), PathSection(("sites", name, "uplink_mtu"), site.uplink_mtu))


def _to_cloud(spec: ClusterSpec, name: str, site: Site) -> tuple[PathSection, ...]:
    tunnel = (PathSection(("sites", name, "vpn"), tunnel_mtu(spec, site.vpn)),) if site.vpn else ()
    return (*_uplinked(name, site), *tunnel, _cloud(spec))


def _cloud(spec: ClusterSpec) -> PathSection:
    return PathSection(("network", "link_mtu"), spec.network.link_mtu)
