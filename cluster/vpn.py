"""What the VPN gateway of each cloud takes, and how large a packet is that crosses a tunnel.

A gateway has two ends, with an address each: an AWS connection's two endpoints, the two instances of
an active-active Azure gateway, the two interfaces of Google's HA VPN.

Inside ranges. AWS: a /30 of 169.254.0.0/16 that no other connection of the gateway has, but those of
`_AWS_KEEPS` (EC2 API, VpnTunnelOptionsSpecification). Azure: 169.254.21.0 to 169.254.22.255, and
different from those of every other gateway that the device connects to (learn.microsoft.com,
vpn-gateway-howto-aws-bgp). Google: 169.254.0.0/16, unique among the Cloud Routers of a network
(Compute API, routers.interfaces.ipRange; "Create an HA VPN gateway"). All three keep their metadata at
169.254.169.254.

A router's addresses. AWS and Google know an address of the router for each tunnel: the other one of the tunnel's own /30
(EC2 API, VpnTunnelOptionsSpecification; "Create an HA VPN gateway"). To Azure a router is a local network gateway, with
one BGP address, and its connection is the tunnels to both instances ("About active-active VPN gateways"): so the router
has one address for both, on a loopback, and a host route to each instance's through its tunnel ("VPN Gateway FAQ", BGP).

ASNs. IANA's special registry; Azure's own (VPN Gateway FAQ, BGP); Amazon's own (EC2 API,
CreateCustomerGateway). A gateway's is the cloud's default: 64512 on AWS (CreateVpnGateway), 65515 on
Azure (FAQ); Google has none and takes any private one (gcloud compute routers create --asn).

MTU. Google's gateways send and take 1460 bytes ("MTU considerations"). Azure asks for 1400 bytes inside
and an MSS of 1350 ("About VPN devices", IPsec). AWS gives 1446 bytes without NAT-T and 1438 with it, for
AES-GCM-16 ("Best practices for a customer gateway device").

Lifetimes of keys: AWS's and Google's defaults ("Tunnel options for your AWS Site-to-Site VPN connection"; "Supported IKE
ciphers"); Azure's in IKE, which nobody can change, and what its stack sets for ESP ("About VPN devices"). BGP timers: AWS
keeps 10 s and 30 s, Google Cloud Router 20 s and 60 s by default. Azure keeps 60 s and 180 s and does not send keepalives
sooner where a peer asks for less: its sessions then end whenever the shorter hold time has passed ("VPN Gateway FAQ", BGP).
No gateway answers BFD.

Certificates. AWS takes a private certificate of AWS Private CA for the customer gateway, and any other of the same chain from
the router ("AWS Site-to-Site VPN tunnel authentication options"). Azure takes them on every SKU but Basic, from Key Vault
("About site-to-site VPN connections with certificate authentication"). Cloud VPN has a shared secret and nothing else
("vpnTunnels" of the Compute API).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network

from cluster.sites import Vpn
from cluster.spec import Cloud, ClusterSpec

ENDS = 2
"""Of a gateway. Each edge router has a tunnel to each."""
TUNNEL_PREFIX = 30
"""Of the range inside one tunnel: an address for each end."""

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

    asn: its own. asns: those that no site may have. inside: where its tunnels may have addresses, but
    for those `kept`. numbered: a tunnel is a link with an address of the router; else the router has one for all its
    tunnels. Bytes: outer_mtu is the largest packet that it sends or takes; mtu and mss are the
    most that it asks for inside, where it asks for less than would fit. Seconds: ike_life and esp_life are
    what the gateway lets keys live, keepalive and hold its BGP timers. no_certificates: why routers can't have one;
    empty where they can. certificate_name: the subject of an end's own, of {connection} and {end}.
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
        """Whether tunnels may have their addresses in a range."""
        allowed = any(inside.subnet_of(block) for block in self.inside)
        return allowed and not any(inside.overlaps(kept) for kept in self.kept)

    def free(self, prefix: int, taken: Iterable[IPv4Network]) -> IPv4Network | None:
        """The first range of a prefix length that the gateway takes and that shares no address with `taken`."""
        used = tuple(taken)
        for block in self.inside:
            for found in block.subnets(new_prefix=prefix) if prefix >= block.prefixlen else ():
                if self.takes(found) and not any(found.overlaps(other) for other in used):
                    return found
        return None


GATEWAYS = {
    Cloud.AWS: Gateway(
        64512,
        _IANA_KEEPS | _AMAZON_KEEPS,
        kept=(*_AWS_KEEPS, _METADATA),
        # Seen in published settings of routers; no page of AWS's says it.
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
        no_certificates="Azure takes them, and this release's provider can't ask for them: it speaks API 2024-05-01, "
        "which has no authenticationType",
    ),
    Cloud.GCP: Gateway(
        64512,
        outer_mtu=1460,
        ike_life=36000,
        esp_life=10800,
        keepalive=20,
        hold=60,
        no_certificates="Cloud VPN knows routers by a shared secret and by nothing else",
    ),
    Cloud.LAB: Gateway(64512, no_certificates="a lab has no gateway"),
}


def gateway(spec: ClusterSpec) -> Gateway:
    """The gateway on the cloud side of a cluster."""
    return GATEWAYS[spec.control_plane.cloud]


def secret_names(spec: ClusterSpec) -> tuple[str, ...]:
    """Names of the secrets that the stack's configuration must hold: pre-shared keys."""
    routers = [router for site in spec.sites.values() if site.vpn for router in site.vpn.routers.values()]
    return tuple(dict.fromkeys(router.psk.secret for router in routers if router.psk))


def prefix_for(vpn: Vpn) -> int:
    """Prefix length of the smallest range with room for every tunnel of a site."""
    return TUNNEL_PREFIX - (ENDS * len(vpn.routers) - 1).bit_length()


def tunnel_mtu(spec: ClusterSpec, vpn: Vpn) -> int:
    """Bytes of the largest packet that crosses a tunnel whole.

    Room is kept for NAT traversal: IKE finds out by itself whether there is a NAT in between (RFC 7296,
    2.23), and with one, every packet is carried in UDP.
    """
    outer = min(vpn.underlay_mtu, gateway(spec).outer_mtu)
    encrypted = outer - _IPV4 - _UDP - _ESP - _GCM_VECTOR - _GCM_CHECK
    return min(encrypted // _ESP_ALIGNMENT * _ESP_ALIGNMENT - _ESP_TRAILER, gateway(spec).mtu)


def tunnel_mss(spec: ClusterSpec, vpn: Vpn) -> int:
    """Bytes of the largest TCP segment that crosses a tunnel whole."""
    return min(tunnel_mtu(spec, vpn) - _IPV4 - _TCP, gateway(spec).mss)
