"""HA VPN of Google Cloud."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

from sandbox.simcloud.gcp.common import GLOBAL, REGIONAL, bare, compute, kept, numbered, one_network, one_of
from sandbox.simcloud.gcp.network import IN_NETWORK
from sandbox.simcloud.gcp.tokens import GATEWAY, PEER_GATEWAY, ROUTER
from sandbox.simcloud.gcp.words import conflict, invalid
from sandbox.simcloud.identifiers import digest
from sandbox.simcloud.rules import Call, Reference
from sandbox.simcloud.values import at

# "ExternalVpnGateway", Compute Engine API: redundancyType and the number of interfaces.
_INTERFACES = {"SINGLE_IP_INTERNALLY_REDUNDANT": 1, "TWO_IPS_REDUNDANCY": 2, "FOUR_IPS_REDUNDANCY": 4}
_ENDS = 2
_PRIVATE = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")))


def _ends(call: Call) -> object:
    """Return the gateway's ends, each with a public address from a separate pool."""
    given = [dict(row) for row in at(call.inputs, "vpnInterfaces[]")] or [{"id": end} for end in range(_ENDS)]
    return kept(
        call, "vpnInterfaces", lambda: [{**row, "ipAddress": _public(call.id, int(row["id"]))} for row in given]
    )


def _public(gateway: str, end: int) -> str:
    return str(IPv4Address("35.242.0.0" if end == 0 else "35.220.0.0") + int(digest(f"{gateway}#{end}")[:4], 16))


def _interfaces(call: Call) -> None:
    rows = list(at(call.inputs, "interfaces[]"))
    ids = sorted(int(row.get("id", 0)) for row in rows)
    kind = call.text("redundancyType")
    number = _INTERFACES.get(kind, len(rows))
    if ids != list(range(number)):
        raise invalid(
            "interfaces",
            str(ids),
            f"{kind or 'An external gateway'} has {number} interfaces, from 0 on.",
            "number them from 0, and choose the redundancyType by their number",
        )
    addresses = [row.get("ipAddress") for row in rows]
    if len(set(addresses)) != len(addresses):
        raise invalid("interfaces", str(addresses), "Two interfaces have one address.", "give each a separate address")


def _tunnel(call: Call) -> None:
    if call.inputs.get("vpnGateway"):
        if call.inputs.get("vpnGatewayInterface") is None:
            raise invalid("vpnGatewayInterface", "", "A tunnel of an HA VPN gateway says at which end.", "0 or 1")
        if not call.inputs.get("router"):
            raise invalid("router", "", "HA VPN routes by BGP only.", "set router")
        one_of("peerExternalGateway", "peerGcpGateway")(call)
    if call.inputs.get("vpnGatewayInterface") not in (None, *range(_ENDS)):
        raise invalid("vpnGatewayInterface", call.text("vpnGatewayInterface"), "There is no such interface.", "0 or 1")
    peer = call.target("peerExternalGateway")
    if peer is None:
        return
    end = call.inputs.get("peerExternalGatewayInterface")
    ends = [int(row.get("id", 0)) for row in at(peer.inputs, "interfaces[]")]
    if end not in ends:
        raise invalid(
            "peerExternalGatewayInterface", str(end), f"'{peer.id}' has interfaces {ends}.", "use one of them"
        )


def _is_reachable(call: Call) -> None:
    """Check that a peer with a private address is behind Cloud Interconnect ("HA VPN over Cloud Interconnect overview")."""
    gateway, text = call.target("vpnGateway"), _peer_address(call)
    is_private = text and any(IPv4Address(text) in range_ for range_ in _PRIVATE)
    if is_private and gateway and not any(at(gateway.inputs, "vpnInterfaces[].interconnectAttachment")):
        raise invalid(
            "peerIp",
            text,
            "peer_ip may not be in RFC1918 IP range.",
            "give the peer's address on the internet, or the gateway's interfaces an interconnectAttachment",
        )


def _secret(call: Call) -> None:
    given = [name for name in ("sharedSecret", "sharedSecretWo") if call.inputs.get(name)]
    if len(given) != 1:
        raise conflict(
            "sharedSecret", "one of `shared_secret,shared_secret_wo` must be specified", "give the pre-shared key"
        )


def _peer_address(call: Call) -> str:
    peer = call.target("peerExternalGateway")
    rows = at(peer.inputs, "interfaces[]") if peer else iter(())
    end = call.inputs.get("peerExternalGatewayInterface")
    return next((str(row.get("ipAddress", "")) for row in rows if row.get("id", 0) == end), "")


TYPES = (
    compute(
        "HaVpnGateway",
        "vpn_gateway",
        "vpnGateways",
        where=REGIONAL,
        computed={"stackType": lambda _: "IPV4_ONLY", "gatewayIpVersion": lambda _: "IPV4", "vpnInterfaces": _ends},
        replace_on=("network", "description", "gatewayIpVersion", "params", "stackType", "vpnInterfaces"),
        references=(IN_NETWORK,),
    ),
    compute(
        "ExternalVpnGateway",
        "external_vpn_gateway",
        "externalVpnGateways",
        where=GLOBAL,
        replace_on=("description", "interfaces", "params", "redundancyType"),
        refuse=(_interfaces,),
    ),
    compute(
        "VPNTunnel",
        "vpn_tunnel",
        "vpnTunnels",
        where=REGIONAL,
        computed={
            "tunnelId": numbered,
            "ikeVersion": lambda _: 2,
            "peerIp": _peer_address,
            "sharedSecretHash": lambda call: digest(call.id)[:27],
            "detailedStatus": lambda _: "Tunnel is up and running.",
        },
        replace_on=(
            *("cipherSuite", "description", "ikeVersion", "localTrafficSelectors", "params", "peerExternalGateway"),
            *("peerExternalGatewayInterface", "peerGcpGateway", "peerIp", "remoteTrafficSelectors", "router"),
            *("sharedSecret", "sharedSecretWoVersion", "targetVpnGateway", "vpnGateway", "vpnGatewayInterface"),
        ),
        references=(
            Reference("vpnGateway", (GATEWAY,), resolve=bare),
            Reference("peerExternalGateway", (PEER_GATEWAY,), resolve=bare),
            Reference("router", (ROUTER,), resolve=bare),
        ),
        refuse=(_secret, _tunnel, _is_reachable, one_network("vpnGateway", "router")),
    ),
)
