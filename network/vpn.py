"""The tunnels that join sites to the region: a plan for both ends of each.

Every edge router of a site has a tunnel to each end of the cloud's gateway: IPsec with a pre-shared key or certificates, and
BGP inside. The cloud's network and the routers' settings both come from this plan, so the two ends agree. The other end accepts
only the routes in `announces` and drops all others, so a router that joins two clusters never connects them to each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, collapse_addresses

from cluster.sites import RouterCertificate
from cluster.spec import Cluster
from cluster.vpn import ENDS, TUNNEL_PREFIX, gateway, tunnel_mss, tunnel_mtu


@dataclass(frozen=True)
class TunnelEnd:
    """One end of a tunnel.

    address: for BGP, with the range of the tunnel's link, or as /32 if the cloud's tunnels have no addresses.
    announces: the routes that it announces to the other end, ascending.
    """

    address: IPv4Interface
    asn: int
    announces: tuple[IPv4Network, ...]


@dataclass(frozen=True)
class Tunnel:
    """A tunnel.

    gateway_end: the end of the gateway, from 0. peer: the router's public address. secret: the name of the pre-shared key in the
    stack's configuration, empty with a certificate. mtu, mss: the largest packet and TCP segment, in bytes, that pass without
    fragmentation. esp: the cipher, the bits of its key and the bytes of its check value.
    """

    site: str
    router: str
    gateway_end: int
    peer: IPv4Address
    secret: str
    cloud: TunnelEnd
    edge: TunnelEnd
    mtu: int
    mss: int
    ike_version: int = 2
    esp: str = "AES-256-GCM-16"
    certificate: RouterCertificate | None = None


def tunnels(cluster: Cluster) -> tuple[Tunnel, ...]:
    """Return every tunnel of a checked cluster, by site, router and end; none if no site has a `vpn`.

    A tunnel's addresses depend on its site's range and the router's position in the spec, so adding a site, or a router at the
    end, changes no other addresses. The gateway has the first address, as AWS requires (learn.microsoft.com,
    vpn-gateway-howto-aws-bgp). If tunnels have no addresses (`cluster.vpn.Gateway`), a router uses the address of its first
    tunnel in all of them.
    """
    return tuple(tunnel for site in cluster.spec.sites for tunnel in _of_site(cluster, site))


def _of_site(cluster: Cluster, name: str) -> tuple[Tunnel, ...]:
    spec, site = cluster.spec, cluster.spec.sites[name]
    vpn = site.vpn
    if not vpn:
        return ()
    planned, routes = [], tuple(collapse_addresses([*site.racks.values(), *vpn.networks]))
    links = vpn.inside.subnets(new_prefix=TUNNEL_PREFIX)
    for router, settings in vpn.routers.items():
        own = [next(links) for _ in range(ENDS)]
        for end, link in enumerate(own):
            cloud, edge = _addresses(link, own[0], gateway(spec).numbered)
            planned.append(
                Tunnel(
                    site=name,
                    router=router,
                    gateway_end=end,
                    peer=settings.address,
                    secret=settings.psk.secret if settings.psk else "",
                    certificate=settings.certificate,
                    cloud=TunnelEnd(cloud, gateway(spec).asn, (spec.network.nodes,)),
                    edge=TunnelEnd(edge, vpn.asn, routes),
                    mtu=tunnel_mtu(spec, vpn),
                    mss=tunnel_mss(spec, vpn),
                )
            )
    return tuple(planned)


def _addresses(link: IPv4Network, first: IPv4Network, numbered: bool) -> tuple[IPv4Interface, IPv4Interface]:
    """Return the gateway's and the router's address. first: the link of the router's first tunnel."""
    if numbered:
        return IPv4Interface((link[1], link.prefixlen)), IPv4Interface((link[2], link.prefixlen))
    return IPv4Interface(link[1]), IPv4Interface(first[2])
