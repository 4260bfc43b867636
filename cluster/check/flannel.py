"""NET-009 and FLN-001 to FLN-005: whether flannel's overlay works on these networks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from cluster.check.catalogue import of_cloud
from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where
from cluster.mtu import paths, tightest
from cluster.network import NODE_PORTS, FlannelBackend
from cluster.quantities import SMALLEST_MTU

_MTU: Where = ("network", "flannel", "mtu")
_BACKEND: Where = ("network", "flannel", "backend")
_DIRECT: Where = ("network", "flannel", "direct_routing")

# UDP ports in use on ordinary hosts (IANA); 4791 is RoCE v2, whose packets the card takes in hardware.
_UDP_PORTS = {
    53: "DNS",
    67: "DHCP",
    68: "DHCP",
    123: "NTP",
    500: "IPsec (IKE)",
    4500: "IPsec (NAT traversal)",
    4791: "RoCE v2",
    51820: "WireGuard",
}


def mtu_fits(subject: Subject) -> Iterator[Finding]:
    """The link with the smallest MTU limits all: flannel has one MTU for all pods of a node."""
    chain, path = paths(subject.spec), tightest(subject.spec)
    link = path.narrowest
    less = f" - {path.overhead} for VXLAN = {path.room}" if path.overhead else ""
    also = (*(network_link.where for other in chain for network_link in other.links), _BACKEND)
    mtu = subject.spec.network.flannel.mtu
    if path.room < SMALLEST_MTU:
        message = f"{link}{less} leaves pods less than the {SMALLEST_MTU} bytes that IPv4 needs"
        yield Finding(link.where, message, f"raise the link's MTU to {SMALLEST_MTU + path.overhead} or more", also=also)
    elif mtu is not None and mtu > path.room:
        message = f"flannel mtu {mtu} is too large: {link}{less}; larger packets would be lost silently"
        hint = f"write {path.room} or less, or leave it out"
        yield Finding(_MTU, message, hint, tuple(str(other) for other in chain), also)


def mtu_of_the_cloud(subject: Subject) -> Iterator[Finding]:
    """A cloud's network drops packets above its own limit."""
    cloud, link, facts = subject.spec.control_plane.cloud, subject.spec.network.link_mtu, of_cloud(subject)
    if facts and not facts.link_mtu.min <= link <= facts.link_mtu.max:
        least, most = facts.link_mtu.min, facts.link_mtu.max
        message = f"network.link_mtu {link} is outside what machines in {cloud} can have, {least} to {most} bytes"
        where: Where = ("network", "link_mtu")
        yield Finding(where, message, f"write {min(max(link, least), most)}", also=(("control_plane", "cloud"),))


def mtu_is_heeded(subject: Subject) -> Iterator[Finding]:
    """flannel's host-gw has no MTU setting: it gives pods the MTU of their node's interface."""
    flannel = subject.spec.network.flannel
    if flannel.backend is FlannelBackend.HOST_GW and flannel.mtu is not None:
        message = f"flannel mtu {flannel.mtu} has no effect with host-gw: pods get the MTU of their node's interface"
        yield Finding(_MTU, message, "leave mtu out, and set the interfaces' own MTU", also=(_BACKEND,))


def _networks(subject: Subject) -> Counter[tuple[str, str]]:
    """Map (name, range) of each layer-2 network to its workers. The region's subnets count as one, at maximum size."""
    count: Counter[tuple[str, str]] = Counter()
    spec = subject.spec
    for _, pool, host in subject.hosts():
        site = spec.sites.get(spec.pools[pool].site or "")
        if site and host.rack in site.racks:
            count[f"rack {spec.pools[pool].site}/{host.rack}", str(site.racks[host.rack])] += 1
    if spec.cloud_workers:
        count["network.nodes", str(spec.network.nodes)] += spec.cloud_workers
    return count


def _all_hosts(subject: Subject) -> tuple[Where, ...]:
    return (*(("pools", pool, "hosts") for pool in subject.cluster.hosts), ("sites",))


def one_layer_2(subject: Subject) -> Iterator[Finding]:
    """host-gw routes to a node by its link address; routers between nodes don't know pod addresses."""
    networks = _networks(subject)
    if subject.spec.network.flannel.backend is FlannelBackend.HOST_GW and len(networks) > 1:
        (name, first), (other_name, second), *rest = networks
        more = f" and {len(rest)} more" if rest else ""
        yield Finding(
            _BACKEND,
            f"flannel backend host-gw needs all nodes on one layer-2 network, but {name} ({first}) "
            f"and {other_name} ({second}){more} are routed; pods on different ones could not reach each other",
            "write backend: vxlan with direct_routing: true, which routes natively inside a rack",
            also=_all_hosts(subject),
        )


def direct_routing_applies(subject: Subject) -> Iterator[Finding]:
    """flannel silently falls back to VXLAN for nodes that aren't neighbours."""
    flannel = subject.spec.network.flannel
    networks = _networks(subject)
    # Workers in the region never count as neighbours: packets between them are always VXLAN.
    networks.pop(("network.nodes", str(subject.spec.network.nodes)), None)
    hosts = networks.total()
    direct = flannel.backend is FlannelBackend.VXLAN and flannel.direct_routing and not flannel.allow_encapsulation
    if hosts != len(subject.cluster.host_list()):
        return  # some hosts are in undeclared racks, which INV-007 reports
    if direct and hosts > 1 and max(networks.values()) == 1:
        yield Finding(
            _DIRECT,
            f"direct_routing: true would never apply: no two of the {hosts} hosts share a rack, "
            "so all traffic would be VXLAN",
            "set allow_encapsulation: true to accept that, or direct_routing: false",
            also=_all_hosts(subject),
        )


def cloud_fabric(subject: Subject) -> Iterator[Finding]:
    """Cloud fabrics deliver by address and don't know pod addresses."""
    plane, flannel = subject.spec.control_plane, subject.spec.network.flannel
    pools = [name for name, pool in subject.spec.pools.items() if pool.site is None]
    if not pools or subject.cluster.is_lab:
        return
    also: tuple[Where, ...] = (("control_plane", "cloud"), *(("pools", name, "site") for name in pools))
    if flannel.backend is FlannelBackend.HOST_GW:
        message = (
            f"flannel host-gw usually can't work in {plane.cloud} (pool {pools[0]}); "
            "its fabric drops packets for unknown pod addresses"
        )
        yield Finding(_BACKEND, message, "write backend: vxlan", also=also)


def port_free(subject: Subject) -> Iterator[Finding]:
    """flannel's VXLAN uses a UDP port on every node."""
    flannel = subject.spec.network.flannel
    owner = "ports of Services" if flannel.port in NODE_PORTS else _UDP_PORTS.get(flannel.port)
    if flannel.backend is FlannelBackend.VXLAN and owner:
        message = f"VXLAN port {flannel.port} is also used by {owner}; one of the two would lose its packets"
        yield Finding(("network", "flannel", "port"), message, "write 8472, or leave it out", also=(_BACKEND,))


RULES: tuple[tuple[str, Rule], ...] = (
    ("NET-009", mtu_fits),
    ("NET-009", mtu_of_the_cloud),
    ("FLN-001", one_layer_2),
    ("FLN-002", direct_routing_applies),
    ("FLN-003", cloud_fabric),
    ("FLN-004", port_free),
    ("FLN-005", mtu_is_heeded),
)
