"""FRR's configuration on an edge router: BGP with each gateway, and the routes that each side may announce.

There is no BFD, because no cloud's VPN gateway supports it (`cluster.vpn`). There is no graceful restart (RFC 4724): a gateway
that negotiated it keeps sending packets into a cut tunnel for the restart time after its hold time (tests/vpn;
docs/how-to/vpn.md has numbers). While FRR itself restarts, the router's own routes stay in the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator

from network.gateway import Line, RouterConfig

MAXIMUM_ROUTES = 100
"""The most routes to accept from a gateway. It announces a cluster's range, and on Azure a few of its own; many more are a
mistake."""
_RETRY_S = 10
_ROUTES_KEPT_S = 60
"""How long routes stay in the kernel while FRR restarts."""

DAEMONS = f"""\
bgpd=yes
vtysh_enable=yes
zebra_options="-A 127.0.0.1 -s 90000000 -K {_ROUTES_KEPT_S}"
bgpd_options="-A 127.0.0.1"
staticd_options="-A 127.0.0.1"
"""


def config(router: RouterConfig) -> str:
    """Return ``/etc/frr/frr.conf``."""
    return "\n".join([*_head(), *_routes(router), *_bgp(router), *_lists(router), "end", ""])


def _head() -> Iterator[str]:
    """Yield the global settings.

    IPv6 forwarding is off explicitly: clusters have no IPv6, and FRR's tool would turn it on by default. Nexthop objects are off:
    Linux removes one from its groups when its interface goes down, and FRR 8.4 does not add it back when the interface is up.
    FRR 10 resolves next hops over the default route unless its configuration forbids it: a gateway would seem to be
    reachable outside its tunnel until the hold time is over.
    """
    yield from ("frr defaults traditional", "log syslog informational", "no ipv6 forwarding")
    yield from ("service integrated-vtysh-config", "!")
    yield from ("no zebra nexthop kernel enable", "no ip nht resolve-via-default", "!")


def _routes(router: RouterConfig) -> Iterator[str]:
    """Yield the static routes. A blackhole drops packets for a region without a tunnel: the default route would send them out
    unencrypted."""
    for region in sorted({network for line in router.lines for network in line.region}):
        yield f"ip route {region} blackhole 254"
    for line in router.lines:
        if not line.numbered:
            yield f"ip route {line.tunnel.cloud.address.ip}/32 {line.interface}"
    yield "!"


def _bgp(router: RouterConfig) -> Iterator[str]:
    yield f"router bgp {router.asn}"
    yield f" bgp router-id {router.address}"
    yield " no bgp default ipv4-unicast"
    yield " bgp graceful-restart-disable"
    yield " no bgp network import-check"
    for line in router.lines:
        yield from _neighbour(line)
    yield " !"
    yield " address-family ipv4 unicast"
    for network in sorted({network for line in router.lines for network in line.site}):
        yield f"  network {network}"
    for line in router.lines:
        yield from _family(line)
    yield from (" exit-address-family", "exit", "!")


def _neighbour(line: Line) -> Iterator[str]:
    peer = line.tunnel.cloud
    yield f" neighbor {peer.address.ip} remote-as {peer.asn}"
    yield f" neighbor {peer.address.ip} description {line.name}"
    if not line.numbered:
        yield f" neighbor {peer.address.ip} ebgp-multihop 2"
        yield f" neighbor {peer.address.ip} update-source {line.tunnel.edge.address.ip}"
    yield f" neighbor {peer.address.ip} timers {line.cloud.keepalive} {line.cloud.hold}"
    yield f" neighbor {peer.address.ip} timers connect {_RETRY_S}"


def _family(line: Line) -> Iterator[str]:
    peer = line.tunnel.cloud.address.ip
    yield f"  neighbor {peer} activate"
    yield f"  neighbor {peer} soft-reconfiguration inbound"
    yield f"  neighbor {peer} prefix-list from-{line.cluster} in"
    yield f"  neighbor {peer} prefix-list to-{line.cluster} out"
    yield f"  neighbor {peer} maximum-prefix {MAXIMUM_ROUTES}"


def _lists(router: RouterConfig) -> Iterator[str]:
    """Yield the prefix lists. A region may announce parts of its range. Anything that is not permitted is dropped."""
    for line in {line.cluster: line for line in router.lines}.values():
        for number, network in enumerate(line.region, 1):
            longer = "" if network.prefixlen == 32 else " le 32"
            yield f"ip prefix-list from-{line.cluster} seq {5 * number} permit {network}{longer}"
        for number, network in enumerate(line.site, 1):
            yield f"ip prefix-list to-{line.cluster} seq {5 * number} permit {network}"
    yield "!"
