"""Edge routers of sites, each with its tunnels to every cluster that it joins: what a router is told.

A hub and its spokes: what a site has reaches every cluster that the site is joined to, and no cluster reaches another
through the site. BGP offers a cluster nothing but the site's own ranges, and the router forwards nothing from tunnel to
tunnel. Packets of one connection may leave by one tunnel, or router, and come back by another, so nothing here keeps the
state of connections.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from cluster.sites import SiteSsh
from cluster.spec import Cluster
from cluster.vpn import Gateway, gateway
from network.vpn import Tunnel, tunnels


@dataclass(frozen=True)
class Papers:
    """A router's certificate at one cluster. certificate, authorities: PEM, of the issuer first and of a root last.
    subject: the certificate's, in DER. expires: aware."""

    certificate: str
    authorities: tuple[str, ...]
    subject: bytes
    expires: datetime


@dataclass(frozen=True)
class Joined:
    """A cluster, and where its gateway's ends are: ``<site>/<router>`` -> public addresses, as in `ClusterOutputs`.
    Routers are left out that the cloud knows no gateway for yet. names: of the ends' certificates, likewise; papers: of the
    routers; a router with a certificate is left out without them."""

    cluster: Cluster
    gateways: Mapping[str, tuple[str, ...]]
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    papers: Mapping[str, Papers] = field(default_factory=dict)


@dataclass(frozen=True)
class Line:
    """A tunnel as its router sees it. remote: the public address of the gateway's end. gateway_name: the subject of that
    end's certificate. papers: the router's; None with a pre-shared key."""

    cluster: str
    cloud: Gateway
    tunnel: Tunnel
    remote: IPv4Address
    gateway_name: str = ""
    papers: Papers | None = None

    @property
    def name(self) -> str:
        """Of the connection. A router has one site in a cluster."""
        return f"{self.cluster}-{self.tunnel.gateway_end}"

    @property
    def if_id(self) -> int:
        """What ties an interface to its keys. No two tunnels of a router have one address (VPN-006), all link-local."""
        return int(self.tunnel.cloud.address.ip) & 0xFFFF

    @property
    def interface(self) -> str:
        """At most 11 characters; Linux takes 15."""
        return f"vpn-{self.if_id >> 8}-{self.if_id & 0xFF}"

    @property
    def numbered(self) -> bool:
        """Whether the tunnel is a link with addresses of its own."""
        return self.tunnel.edge.address.network.prefixlen < 32

    @property
    def region(self) -> tuple[IPv4Network, ...]:
        return self.tunnel.cloud.announces

    @property
    def site(self) -> tuple[IPv4Network, ...]:
        return self.tunnel.edge.announces


@dataclass(frozen=True)
class EdgeRouter:
    """A router at a site's edge. address: its public one. host, ssh: how it is configured; no host where it is not ours."""

    site: str
    name: str
    address: IPv4Address
    asn: int
    host: IPv4Address | None
    ssh: SiteSsh
    lines: tuple[Line, ...]

    @property
    def machine(self) -> str:
        """Its name in an inventory."""
        return f"{self.site}-{self.name}"


def routers(joined: Iterable[Joined]) -> tuple[EdgeRouter, ...]:
    """Every edge router that some cluster's gateway is known for; one that is in two specs has the tunnels of both."""
    found: dict[IPv4Address, EdgeRouter] = {}
    for one in joined:
        for tunnel in tunnels(one.cluster):
            line = _line(one, tunnel)
            if line is None:
                continue
            site = one.cluster.spec.sites[tunnel.site]
            settings = site.vpn.routers[tunnel.router] if site.vpn else None
            host = settings.host if settings else None
            known = found.get(tunnel.peer)
            lines = (*known.lines, line) if known else (line,)
            first = known or EdgeRouter(tunnel.site, tunnel.router, tunnel.peer, tunnel.edge.asn, host, site.ssh, ())
            found[tunnel.peer] = EdgeRouter(**{**vars(first), "lines": lines})
    return tuple(found.values())


def _line(one: Joined, tunnel: Tunnel) -> Line | None:
    """None where what it needs is not known."""
    router = f"{tunnel.site}/{tunnel.router}"
    ends = one.gateways.get(router, ())
    if tunnel.gateway_end >= len(ends):
        return None
    plain = Line(one.cluster.name, gateway(one.cluster.spec), tunnel, IPv4Address(ends[tunnel.gateway_end]))
    if tunnel.certificate is None:
        return plain
    names, papers = tunnel.certificate.names or one.names.get(router, ()), one.papers.get(router)
    if papers is None or tunnel.gateway_end >= len(names):
        return None
    return replace(plain, gateway_name=names[tunnel.gateway_end], papers=papers)


def settings(router: EdgeRouter) -> dict[str, Any]:
    """``/etc/menagerie/vpn.json``: what the program `menagerie-vpn` reads."""
    loopback = sorted({str(line.tunnel.edge.address) for line in router.lines if not line.numbered})
    links = {
        line.interface: {
            "connection": line.name,
            "if_id": line.if_id,
            "mtu": line.tunnel.mtu,
            "address": str(line.tunnel.edge.address) if line.numbered else None,
            "peer": str(line.tunnel.cloud.address.ip),
            **({"certificate": certificate_name(line)} if line.papers else {}),
        }
        for line in router.lines
    }
    return {"links": links, "loopback": loopback}


def certificate_name(line: Line) -> str:
    """Of the files of a router's key and certificate, in swanctl's folders for them."""
    return f"menagerie-{line.cluster}.pem"
