"""Properties of each cloud's VPN gateway, and the largest packet that fits a tunnel.

A gateway has two ends with one address each: the two endpoints of an AWS connection, the two instances of an
active-active Azure gateway, or the two interfaces of Google's HA VPN.

Inside ranges. AWS: a /30 of 169.254.0.0/16 that no other connection of the gateway has, except those in
`_AWS_KEEPS` (EC2 API, VpnTunnelOptionsSpecification). Azure: 169.254.21.0 to 169.254.22.255, and
different from those of every other gateway that the device connects to (learn.microsoft.com,
vpn-gateway-howto-aws-bgp). Google: 169.254.0.0/16, unique among the Cloud Routers of a network
(Compute API, routers.interfaces.ipRange; "Create an HA VPN gateway"). All three have their metadata at
169.254.169.254.

Addresses of a router. AWS and Google use one address of the router per tunnel: the other one of the tunnel's /30
(EC2 API, VpnTunnelOptionsSpecification; "Create an HA VPN gateway"). For Azure a router is a local network gateway with
one BGP address, and its connection consists of the tunnels to both instances ("About active-active VPN gateways"). So the
router has one address for both, on a loopback, and a host route to each instance's address through its tunnel ("VPN Gateway
FAQ", BGP).

ASNs. Reserved are those in IANA's special registry, Azure's own (VPN Gateway FAQ, BGP) and Amazon's own (EC2 API,
CreateCustomerGateway). The gateway has the cloud's default: 64512 on AWS (CreateVpnGateway), 65515 on Azure (FAQ). Google
has no default and accepts any private one (gcloud compute routers create --asn).

MTU. Google's gateways send and accept 1460 bytes ("MTU considerations"). Azure requires 1400 bytes inside
and an MSS of 1350 ("About VPN devices", IPsec). AWS documents 1446 bytes without NAT-T and 1438 with it, for
AES-GCM-16 ("Best practices for a customer gateway device").

Lifetimes of keys. AWS's and Google's defaults ("Tunnel options for your AWS Site-to-Site VPN connection"; "Supported IKE
ciphers"). For Azure the fixed one for IKE, and what its stack sets for ESP ("About VPN devices").

BGP timers. The defaults are 10 s and 30 s on AWS, 20 s and 60 s for Google's Cloud Router. Azure has 60 s and 180 s, and
doesn't send keepalives sooner if a peer wants a shorter hold time: its sessions then end each time that has passed ("VPN
Gateway FAQ", BGP). No gateway supports BFD.

Certificates. AWS accepts a private certificate of AWS Private CA for the customer gateway, and any other of the same chain
from the router ("AWS Site-to-Site VPN tunnel authentication options"). Azure supports them on every SKU except Basic, from
Key Vault ("About site-to-site VPN connections with certificate authentication"). Cloud VPN supports only a shared secret
("vpnTunnels" of the Compute API).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network

from cluster.sites import Vpn
from cluster.spec import Cloud, ClusterSpec

ENDS = 2
"""Ends of a gateway. Each edge router has a tunnel to each."""
TUNNEL_PREFIX = 30
"""Prefix length of the range inside one tunnel, with one address for each end."""

LINK_LOCAL = IPv4Network("169.254.0.0/16")
_METADATA = IPv4Network("169.254.169.252/30")
_AWS_KEEPS = tuple(IPv4Network(f"169.254.{number}.0/30") for number in range(6))
_IANA_KEEPS = frozenset({23456, *range(64496, 64512), *range(65535, 65552)})
_AZURE_KEEPS = frozenset({8074, 8075, 12076, 65515, *range(65517, 65521)})
_AMAZON_KEEPS = frozenset({7224, 9059})

_IPV4, _TCP, _UDP = 20, 20, 8
# RFC 4303: security parameters index and sequence number; then padding to four bytes, its length and the
# next header. RFC 4106: AES-GCM's vector before the packet and its integrity check after it.
_ESP, _ESP_TRAILER, _ESP_ALIGNMENT, _GCM_VECTOR, _GCM_CHECK = 8, 2, 4, 8, 16


@dataclass(frozen=True)
class Gateway:
    """The VPN gateway of a cloud.

    asn: its own. asns: those that no site may use.
    inside: allowed ranges for addresses in tunnels. kept: exceptions from them.
    numbered: whether the router has an address per tunnel; otherwise it has one for all tunnels.
    outer_mtu: largest packet that it sends or accepts, in bytes. mtu, mss: largest that it allows inside, in bytes, if
        that is less than would fit.
    ike_life, esp_life: lifetimes of keys, in seconds. keepalive, hold: BGP timers, in seconds.
    no_certificates: why routers can't have certificates; empty if they can.
    certificate_name: subject of an end's certificate, with {connection} and {end}.
    """

    asn: int
    asns: frozenset[int] = _IANA_KEEPS
    inside: tuple[IPv4Network, ...] = (LINK_LOCAL,)
    kept: tuple[IPv4Network, ...] = (_METADATA,)
    numbered: bool = True
    outer_mtu: int = 1500
    mtu: int = 1500
    mss: int = 1460
    ike_life: int = 28800
    esp_life: int = 3600
    keepalive: int = 10
    hold: int = 30
    no_certificates: str = ""
    certificate_name: str = ""

    def takes(self, inside: IPv4Network) -> bool:
        """Return whether tunnels may have their addresses in a range."""
        allowed = any(inside.subnet_of(block) for block in self.inside)
        return allowed and not any(inside.overlaps(kept) for kept in self.kept)

    def free(self, prefix: int, taken: Iterable[IPv4Network]) -> IPv4Network | None:
        """Return the first range of a prefix length that the gateway accepts and that doesn't overlap `taken`."""
        used = tuple(taken)
        for block in self.inside:
            for candidate in block.subnets(new_prefix=prefix) if prefix >= block.prefixlen else ():
                if self.takes(candidate) and not any(candidate.overlaps(other) for other in used):
                    return candidate
        return None


GATEWAYS = {
    Cloud.AWS: Gateway(
        64512,
        _IANA_KEEPS | _AMAZON_KEEPS,
        kept=(*_AWS_KEEPS, _METADATA),
        # From published settings of routers; AWS doesn't document it.
        certificate_name="C=US, ST=WA, L=Seattle, O=Amazon.com, OU=AWS, CN={connection}.endpoint-{end}",
    ),
    Cloud.AZURE: Gateway(
        65515,
        _IANA_KEEPS | _AZURE_KEEPS,
        (IPv4Network("169.254.21.0/24"), IPv4Network("169.254.22.0/24")),
        numbered=False,
        mtu=1400,
        mss=1350,
        esp_life=27000,
        keepalive=60,
        hold=180,
        no_certificates="Azure supports them, but this release's provider can't set them up: it uses API 2024-05-01, "
        "which has no authenticationType",
    ),
    Cloud.GCP: Gateway(
        64512,
        outer_mtu=1460,
        ike_life=36000,
        esp_life=10800,
        keepalive=20,
        hold=60,
        no_certificates="Cloud VPN authenticates routers only by a shared secret",
    ),
    Cloud.LAB: Gateway(64512, no_certificates="a lab has no gateway"),
}


def gateway(spec: ClusterSpec) -> Gateway:
    """Return the gateway of a cluster's cloud."""
    return GATEWAYS[spec.control_plane.cloud]


def secret_names(spec: ClusterSpec) -> tuple[str, ...]:
    """Return the names of the secrets that the stack's configuration must have: pre-shared keys."""
    routers = [router for site in spec.sites.values() if site.vpn for router in site.vpn.routers.values()]
    return tuple(dict.fromkeys(router.psk.secret for router in routers if router.psk))


def prefix_for(vpn: Vpn) -> int:
    """Return the prefix length of the smallest range with room for every tunnel of a site."""
    return TUNNEL_PREFIX - (ENDS * len(vpn.routers) - 1).bit_length()


def tunnel_mtu(spec: ClusterSpec, vpn: Vpn) -> int:
    """Return the size in bytes of the largest packet that fits a tunnel unfragmented.

    This includes room for NAT traversal: IKE detects a NAT automatically (RFC 7296, 2.23), and then every packet is
    encapsulated in UDP.
    """
    outer = min(vpn.underlay_mtu, gateway(spec).outer_mtu)
    encrypted = outer - _IPV4 - _UDP - _ESP - _GCM_VECTOR - _GCM_CHECK
    return min(encrypted // _ESP_ALIGNMENT * _ESP_ALIGNMENT - _ESP_TRAILER, gateway(spec).mtu)


def tunnel_mss(spec: ClusterSpec, vpn: Vpn) -> int:
    """Return the size in bytes of the largest TCP segment that fits a tunnel unfragmented."""
    return min(tunnel_mtu(spec, vpn) - _IPV4 - _TCP, gateway(spec).mss)
