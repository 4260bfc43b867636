"""The whole chain of MTUs: which links pod packets cross, and what is left for a pod.

A node's flannel has one MTU for all its pods, so the narrowest path decides. Paths follow from the
sites and pools that the spec declares, not from the hosts they hold today: adding a host must not
change the MTU of running pods. All numbers are bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from cluster.spec import Cluster, FlannelBackend, Site

VXLAN_OVERHEAD = 50
"""Outer IPv4 (20), UDP (8), VXLAN (8) and the inner Ethernet header (14): RFC 7348, section 5."""

_SMALLEST = 576  # RFC 791: what every IPv4 host must take.


@dataclass(frozen=True)
class Link:
    """One stretch of a path. `field` is where the spec says its MTU."""

    field: str
    mtu: int


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
        links = ", ".join(f"{link.field} {link.mtu}" for link in self.links)
        if not self.overhead:
            return f"{self.name}: {links}: {self.room}"
        return f"{self.name}: {links}: {self.narrowest.mtu} - {self.overhead} for VXLAN = {self.room}"


def paths(cluster: Cluster) -> tuple[Path, ...]:
    """Every path on which pod packets can travel.

    Between hosts of one rack flannel's direct routing needs no encapsulation, but flannel falls back
    to VXLAN without a word where it finds no direct route, so room for it is kept there as well.
    """
    overhead = encapsulation(cluster)
    return tuple(_node_paths(cluster, overhead)) + tuple(_api_paths(cluster))


def encapsulation(cluster: Cluster) -> int:
    """Bytes that the backend adds to a pod packet between nodes: 50 for vxlan, 0 for host-gw."""
    return VXLAN_OVERHEAD if cluster.spec.network.flannel.backend is FlannelBackend.VXLAN else 0


def derived(cluster: Cluster) -> int:
    """The largest pod MTU that fits every path, whatever the spec asks for."""
    return _tightest(cluster).room


def pod_mtu(cluster: Cluster) -> int:
    """MTU of pod interfaces: `network.flannel.mtu`, or the largest that fits every path.

    Raises ValueError, with the chain, when the spec asks for more than fits, or when less than 576
    is left.
    """
    largest = derived(cluster)
    asked = cluster.spec.network.flannel.mtu
    if asked is not None and asked > largest:
        raise ValueError(
            f"network.flannel.mtu {asked} is too large: {_tightest(cluster)}; use {largest} or less, or leave it out"
        )
    if largest < _SMALLEST:
        raise ValueError(
            f"pods would get an MTU of {largest}, below the {_SMALLEST} that IPv4 needs: {_tightest(cluster)}; "
            "widen that link"
        )
    return largest if asked is None else asked


def explain(cluster: Cluster) -> tuple[str, ...]:
    """The chain, one line a path, and last what it comes to."""
    asked = cluster.spec.network.flannel.mtu
    largest = derived(cluster)
    if asked is None:
        result = f"pod MTU {largest}, the smallest of these"
    elif asked <= largest:
        result = f"pod MTU {asked}, as network.flannel.mtu says; up to {largest} would fit"
    else:
        result = f"network.flannel.mtu {asked} does not fit; at most {largest} does"
    return (*(str(path) for path in paths(cluster)), result)


def _node_paths(cluster: Cluster, overhead: int) -> Iterator[Path]:
    """Between nodes: inside each rack, between racks, sites, and workers in the cloud."""
    sites = cluster.spec.sites
    for name, site in sites.items():
        yield Path(f"inside a rack of {name}", (_link(name, site),), overhead)
        if len(site.racks) > 1:
            yield Path(f"between racks of {name}", _uplinked(name, site), overhead)
    for (one, site), (other, second) in combinations(sites.items(), 2):
        yield Path(f"between {one} and {other}", _uplinked(one, site) + _uplinked(other, second), overhead)
    if not sites or any(pool.site is None for pool in cluster.spec.pools.values()):
        yield Path("between workers in the cloud", (_cloud(cluster),), overhead)
        for name, site in sites.items():
            yield Path(f"between {name} and workers in the cloud", (*_uplinked(name, site), _cloud(cluster)), overhead)


def _api_paths(cluster: Cluster) -> Iterator[Path]:
    """From pods to the API servers: through the node's address translation, never through VXLAN."""
    for name, site in cluster.spec.sites.items():
        yield Path(f"from pods in {name} to the API servers", (*_uplinked(name, site), _cloud(cluster)), 0)


def _tightest(cluster: Cluster) -> Path:
    return min(paths(cluster), key=lambda path: path.room)


def _link(name: str, site: Site) -> Link:
    return Link(f"sites.{name}.link_mtu", site.link_mtu)


def _uplinked(name: str, site: Site) -> tuple[Link, Link]:
    return (_link(name, site), Link(f"sites.{name}.uplink_mtu", site.uplink_mtu))


def _cloud(cluster: Cluster) -> Link:
    return Link("network.link_mtu", cluster.spec.network.link_mtu)
