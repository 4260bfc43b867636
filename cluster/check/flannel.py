"""NET-009 and FLN-001 to FLN-004: what the overlay can do on these networks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from cluster.check.finding import Finding, Rule, Subject
from cluster.document import Where
from cluster.spec import Cloud, FlannelBackend

# RFC 7348, section 5: outer IPv4 20, UDP 8, VXLAN 8, inner Ethernet 14.
_VXLAN_OVERHEAD = 50
_SMALLEST_MTU = 576  # RFC 791
_MTU: Where = ("network", "flannel", "mtu")
_BACKEND: Where = ("network", "flannel", "backend")
_DIRECT: Where = ("network", "flannel", "direct_routing")

# UDP ports that listen on ordinary hosts (IANA); 4791 is RoCE v2, which takes its packets in hardware.
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


def _links(subject: Subject) -> list[tuple[Where, int, int]]:
    """(place, MTU, bytes that encapsulation takes there) of every link that pod packets cross."""
    spec = subject.spec
    overhead = _VXLAN_OVERHEAD if spec.network.flannel.backend is FlannelBackend.VXLAN else 0
    cloud_workers = not spec.sites or any(pool.site is None for pool in spec.pools.values())
    links: list[tuple[Where, int, int]] = [
        (("network", "link_mtu"), spec.network.link_mtu, overhead if cloud_workers else 0)
    ]
    for name, site in spec.sites.items():
        apart = len(site.racks) > 1 or len(spec.sites) > 1 or cloud_workers
        links.append((("sites", name, "link_mtu"), site.link_mtu, overhead))
        links.append((("sites", name, "uplink_mtu"), site.uplink_mtu, overhead if apart else 0))
    return links


def mtu_fits(subject: Subject) -> Iterator[Finding]:
    """The narrowest link decides: a node's flannel has one MTU for all its pods."""
    links = _links(subject)
    where, link, overhead = min(links, key=lambda each: each[1] - each[2])
    path, largest = ".".join(str(part) for part in where), link - overhead
    less = f" - {overhead} for VXLAN = {largest}" if overhead else ""
    also = tuple(place for place, _, _ in links) + (_BACKEND,)
    asked = subject.spec.network.flannel.mtu
    if largest < _SMALLEST_MTU:
        message = f"{path} {link}{less}: less than the {_SMALLEST_MTU} bytes that IPv4 needs is left for pods"
        yield Finding(where, message, f"widen the link to {_SMALLEST_MTU + overhead} or more", also=also)
    elif asked is not None and asked > largest:
        chain = tuple(
            f"{'.'.join(str(part) for part in place)} {mtu}"
            + (f" - {taken} for VXLAN" if taken else "")
            + f" = {mtu - taken}"
            for place, mtu, taken in links
        )
        message = f"flannel mtu {asked} is too large: {path} {link}{less}; larger packets would be lost without a word"
        yield Finding(_MTU, message, f"write {largest} or less, or leave it out", chain, also)


def _networks(subject: Subject) -> Counter[tuple[str, str]]:
    """(name, range) of each layer-2 network -> workers on it, the cloud's at their most."""
    count: Counter[tuple[str, str]] = Counter()
    spec = subject.spec
    for _, pool, host in subject.hosts():
        site = spec.sites.get(spec.pools[pool].site or "")
        if site and host.rack in site.racks:
            count[f"rack {spec.pools[pool].site}/{host.rack}", str(site.racks[host.rack])] += 1
    cloud = sum(pool.max for pool in spec.pools.values() if pool.site is None)
    if cloud:
        count["network.nodes", str(spec.network.nodes)] += cloud
    return count


def _all_hosts(subject: Subject) -> tuple[Where, ...]:
    return (*(("pools", pool, "hosts") for pool in subject.cluster.hosts), ("sites",))


def one_layer_2(subject: Subject) -> Iterator[Finding]:
    """host-gw routes to a node by its link address; a router between them knows no pods."""
    networks = _networks(subject)
    if subject.spec.network.flannel.backend is FlannelBackend.HOST_GW and len(networks) > 1:
        (one, first), (other, second), *rest = networks
        more = f" and {len(rest)} more" if rest else ""
        yield Finding(
            _BACKEND,
            f"flannel backend host-gw needs all nodes on one layer-2 network, but {one} ({first}) "
            f"and {other} ({second}){more} are routed; pods on different ones could not reach each other",
            "write backend: vxlan with direct_routing: true, which routes natively inside a rack",
            also=_all_hosts(subject),
        )


def direct_routing_applies(subject: Subject) -> Iterator[Finding]:
    """flannel falls back to VXLAN without a word where it finds no neighbour."""
    flannel = subject.spec.network.flannel
    networks = _networks(subject)
    hosts = networks.total()
    wanted = flannel.backend is FlannelBackend.VXLAN and flannel.direct_routing and not flannel.allow_encapsulation
    if hosts != len(subject.cluster.host_list()) + networks["network.nodes", str(subject.spec.network.nodes)]:
        return  # hosts in racks that aren't declared, INV-007
    if wanted and hosts > 1 and max(networks.values()) == 1:
        yield Finding(
            _DIRECT,
            f"direct_routing: true would never apply: no two of the {hosts} hosts share a rack, "
            "so all traffic would be VXLAN",
            "set allow_encapsulation: true to accept that, or direct_routing: false",
            also=_all_hosts(subject),
        )


def cloud_fabric(subject: Subject) -> Iterator[Finding]:
    """Cloud fabrics deliver by address, and know none of the pods'."""
    plane, flannel = subject.spec.control_plane, subject.spec.network.flannel
    pools = [name for name, pool in subject.spec.pools.items() if pool.site is None]
    if not pools or plane.cloud is Cloud.LAB:
        return
    also: tuple[Where, ...] = (("control_plane", "cloud"), *(("pools", name, "site") for name in pools))
    if flannel.backend is FlannelBackend.HOST_GW:
        message = (
            f"flannel host-gw usually can't work in {plane.cloud} (pool {pools[0]}); "
            "its fabric drops packets for unknown pod addresses"
        )
        yield Finding(_BACKEND, message, "write backend: vxlan", also=also)
    elif flannel.direct_routing and plane.cloud is Cloud.AZURE:
        message = (
            f"direct_routing in {plane.cloud} (pool {pools[0]}): nodes of one subnet get native routes, "
            "whose packets its fabric usually drops"
        )
        yield Finding(_DIRECT, message, "write direct_routing: false", also=also, severity="warning")


def port_free(subject: Subject) -> Iterator[Finding]:
    """flannel's VXLAN takes a UDP port on every node."""
    flannel = subject.spec.network.flannel
    owner = _UDP_PORTS.get(flannel.port)
    if flannel.backend is FlannelBackend.VXLAN and owner:
        message = f"VXLAN port {flannel.port} is also used by {owner}; one of the two would lose its packets"
        yield Finding(("network", "flannel", "port"), message, "write 8472, or leave it out", also=(_BACKEND,))


RULES: tuple[tuple[str, Rule], ...] = (
    ("NET-009", mtu_fits),
    ("FLN-001", one_layer_2),
    ("FLN-002", direct_routing_applies),
    ("FLN-003", cloud_fabric),
    ("FLN-004", port_free),
)
