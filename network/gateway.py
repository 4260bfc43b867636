"""Configuration of the edge routers of sites, each with its tunnels to every cluster that it joins.

The topology is a hub with spokes: a site reaches every cluster that it is joined to, and no cluster reaches another through the
site. The router announces only the site's own ranges to a cluster, and forwards nothing from tunnel to tunnel. Packets of one
connection may leave through one tunnel or router and return through another, so nothing here tracks connections.
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
class CertificateChain:
    """A router's certificate for one cluster.

    certificate, authorities: PEM; authorities from the issuer to the root. subject: of the certificate, in DER.
    expires: with a time zone.
    """

    certificate: str
    authorities: tuple[str, ...]
    subject: bytes
    expires: datetime


@dataclass(frozen=True)
class Joined:
    """A cluster, and the ends of its VPN gateway.

    gateways: ``<site>/<router>`` -> public addresses of the ends, as in `ClusterOutputs`, without routers that have no cloud
    gateway yet. names: ``<site>/<router>`` -> names in the ends' certificates. certificates: ``<site>/<router>`` -> the router's
    certificate. A router that needs a certificate gets no tunnel without these two.
    """

    cluster: Cluster
    gateways: Mapping[str, tuple[str, ...]]
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    certificates: Mapping[str, CertificateChain] = field(default_factory=dict)


@dataclass(frozen=True)
class Line:
    """A tunnel as its router sees it.

    remote: the public address of the gateway's end. gateway_name: the subject of that end's certificate. certificates: the router's
    certificate; None with a pre-shared key.
    """

    cluster: str
    cloud: Gateway
    tunnel: Tunnel
    remote: IPv4Address
    gateway_name: str = ""
    certificates: CertificateChain | None = None

    @property
    def name(self) -> str:
        """Return the name of the connection. It is unique because a router has only one site in a cluster."""
        return f"{self.cluster}-{self.tunnel.gateway_end}"

    @property
    def if_id(self) -> int:
        """Return the ID that ties an interface to its keys.

        It is unique on a router: no two of its tunnels have the same address (VPN-006), and all addresses are link-local.
        """
        return int(self.tunnel.cloud.address.ip) & 0xFFFF

    @property
    def interface(self) -> str:
        """Return the interface's name: at most 11 characters, and Linux allows 15."""
        return f"vpn-{self.if_id >> 8}-{self.if_id & 0xFF}"

    @property
    def numbered(self) -> bool:
        """Return whether the tunnel is a link with its own addresses."""
        return self.tunnel.edge.address.network.prefixlen < 32

    @property
    def region(self) -> tuple[IPv4Network, ...]:
        return self.tunnel.cloud.announces

    @property
    def site(self) -> tuple[IPv4Network, ...]:
        return self.tunnel.edge.announces


@dataclass(frozen=True)
class RouterConfig:
    """A router at a site's edge.

    address: public. host, ssh: how to reach it to configure it; host is None if Menagerie does not manage the router.
    """

    site: str
    name: str
    address: IPv4Address
    asn: int
    host: IPv4Address | None
    ssh: SiteSsh
    lines: tuple[Line, ...]

    @property
    def machine(self) -> str:
        """Return the router's name in an inventory."""
        return f"{self.site}-{self.name}"


def routers(joined: Iterable[Joined]) -> tuple[RouterConfig, ...]:
    """Return every edge router with a known gateway in some cluster. A router in two specs has the tunnels of both."""
    by_address: dict[IPv4Address, RouterConfig] = {}
    for joined_cluster in joined:
        for tunnel in tunnels(joined_cluster.cluster):
            line = _line(joined_cluster, tunnel)
            if line is None:
                continue
            site = joined_cluster.cluster.spec.sites[tunnel.site]
            settings = site.vpn.routers[tunnel.router] if site.vpn else None
            host = settings.host if settings else None
            earlier = by_address.get(tunnel.peer)
            lines = (*earlier.lines, line) if earlier else (line,)
            first = earlier or RouterConfig(
                tunnel.site, tunnel.router, tunnel.peer, tunnel.edge.asn, host, site.ssh, ()
            )
            by_address[tunnel.peer] = RouterConfig(**{**vars(first), "lines": lines})
    return tuple(by_address.values())


def _line(joined_cluster: Joined, tunnel: Tunnel) -> Line | None:
    """Return the router's side of a tunnel; None if an address, name or certificate for it is missing."""
    router = f"{tunnel.site}/{tunnel.router}"
    ends = joined_cluster.gateways.get(router, ())
    if tunnel.gateway_end >= len(ends):
        return None
    plain = Line(
        joined_cluster.cluster.name, gateway(joined_cluster.cluster.spec), tunnel, IPv4Address(ends[tunnel.gateway_end])
    )
    if tunnel.certificate is None:
        return plain
    names, papers = (
        tunnel.certificate.names or joined_cluster.names.get(router, ()),
        joined_cluster.certificates.get(router),
    )
    if papers is None or tunnel.gateway_end >= len(names):
        return None
    return replace(plain, gateway_name=names[tunnel.gateway_end], certificates=papers)


def settings(router: RouterConfig) -> dict[str, Any]:
    """Return ``/etc/menagerie/vpn.json``, which the program `menagerie-vpn` reads."""
    loopback = sorted({str(line.tunnel.edge.address) for line in router.lines if not line.numbered})
    links = {
        line.interface: {
            "connection": line.name,
            "if_id": line.if_id,
            "mtu": line.tunnel.mtu,
            "address": str(line.tunnel.edge.address) if line.numbered else None,
            "peer": str(line.tunnel.cloud.address.ip),
            **({"certificate": certificate_name(line)} if line.certificates else {}),
        }
        for line in router.lines
    }
    return {"links": links, "loopback": loopback}


def certificate_name(line: Line) -> str:
    """Return the name of the files with a router's key and certificate, in swanctl's folders."""
    return f"menagerie-{line.cluster}.pem"
