"""AWS Site-to-Site VPN."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import AddressValueError, IPv4Address, IPv4Network, ip_network

from cluster.spec import Cloud
from cluster.vpn import ENDS, GATEWAYS, LINK_LOCAL, TUNNEL_PREFIX
from sandbox.simcloud.aws.addresses import public_address
from sandbox.simcloud.aws.common import arn, ec2, generated_id, others, refused, tags
from sandbox.simcloud.aws.tokens import CUSTOMER_GATEWAY, ROUTE_TABLE, VPC, VPN_GATEWAY
from sandbox.simcloud.identifiers import digest
from sandbox.simcloud.rules import Call, Reference, ResourceType
from sandbox.simcloud.values import Properties, Secret

_CLOUD = GATEWAYS[Cloud.AWS]
_ENDS = range(1, ENDS + 1)
# "VpnTunnelOptionsSpecification" of the EC2 API.
_PRE_SHARED = re.compile(r"(?!0)[A-Za-z0-9._]{8,64}")
_CONNECTION = "aws:ec2/vpnConnection:VpnConnection"


def _one_per_vpc(call: Call) -> None:
    for other in others(call):
        if call.text("vpcId") and other.inputs.get("vpcId") == call.text("vpcId"):
            raise refused(
                "VpnGatewayAttachmentLimitExceeded",
                f"The VPC {call.text('vpcId')} already has a virtual private gateway attached",
                f"use {other.id}, or detach it",
            )


_gateway = ResourceType(
    token=VPN_GATEWAY,
    noun="vpnGateway",
    code="InvalidVpnGatewayID",
    identify=generated_id("vgw"),
    outputs=ec2("vpn-gateway", amazonSideAsn=lambda _: str(_CLOUD.asn)),
    where=("region",),
    replace_on=("amazonSideAsn", "availabilityZone"),
    references=(Reference("vpcId", (VPC,)),),
    refuse=(_one_per_vpc,),
)


def _peer(call: Call) -> None:
    """Check that a router has an IPv4 address, and an ASN that is not Amazon's."""
    text, asn = call.text("ipAddress"), call.text("bgpAsn") or call.text("bgpAsnExtended")
    try:
        address = IPv4Address(text) if text else None
    except AddressValueError:
        raise refused(
            "InvalidParameterValue", f"Value ({text}) for parameter publicIp is invalid.", "give an IPv4 address"
        ) from None
    if address and (address.is_link_local or address.is_loopback or address.is_multicast):
        raise refused(
            "InvalidParameterValue",
            f"Value ({text}) for parameter publicIp is invalid. Invalid value '{text}' for ipAddress",
            "give the router's address on the internet",
        )
    if asn and int(asn) in _RESERVED:
        raise refused(
            "InvalidParameterValue",
            f"Value ({asn}) for parameter bgpAsn is invalid.",
            "it is reserved; use a private ASN",
        )


def _is_reachable(call: Call) -> None:
    """Check that a router with a private address has a connection over a private network ("CreateCustomerGateway")."""
    router = call.target("customerGatewayId")
    text = str(router.inputs.get("ipAddress") or "") if router else ""
    is_private = text and any(IPv4Address(text) in IPv4Network(range_) for range_ in _PRIVATE)
    if router and is_private and call.text("outsideIpAddressType") != "PrivateIpv4":
        raise refused(
            "InvalidParameterValue",
            f"The customer gateway {router.id} has the private address {text}",
            "give the router's address on the internet, or set outsideIpAddressType to PrivateIpv4",
        )


def _certificate(call: Call) -> None:
    """Check for a private certificate of AWS Certificate Manager in the gateway's region or, without one, an address."""
    given = call.text("certificateArn")
    match = _CERTIFICATE.fullmatch(given)
    if given and not match:
        raise refused(
            "InvalidParameterValue",
            f"Value ({given}) for parameter certificateArn is invalid.",
            "give the ARN of a private certificate in AWS Certificate Manager",
            "certificateArn",
        )
    region = str(call.inputs.get("region") or call.settings.region)
    if match and match[1] != region:
        raise refused(
            "InvalidParameterValue",
            f"Value ({given}) for parameter certificateArn is invalid. It is not in {region}",
            f"a certificate belongs to one region; create one in {region}",
            "certificateArn",
        )
    if not given and not call.text("ipAddress"):
        raise refused(
            "MissingParameter", "The request must contain the parameter IpAddress or CertificateArn", "give one of them"
        )


# "CreateCustomerGateway" of the EC2 API: an address is not required with a private certificate.
_CERTIFICATE = re.compile(r"arn:aws[a-z-]*:acm:([a-z0-9-]+):[0-9]{12}:certificate/[A-Za-z0-9_-]+")
# RFC 1918 and RFC 6598.
_PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")
# "CreateCustomerGateway" of the EC2 API: Amazon's own, and the last of two bytes. It takes IANA's for documentation.
_RESERVED = frozenset({7224, 9059, 65535})

_customer = ResourceType(
    token=CUSTOMER_GATEWAY,
    noun="customerGateway",
    code="InvalidCustomerGatewayID",
    identify=generated_id("cgw"),
    outputs=ec2("customer-gateway"),
    where=("region",),
    replace_on=("bgpAsn", "bgpAsnExtended", "certificateArn", "deviceName", "ipAddress", "type"),
    refuse=(_peer, _certificate),
)


def _inside_ranges(call: Call) -> Iterable[tuple[str, IPv4Network]]:
    for end in _ENDS:
        text = call.text(f"tunnel{end}InsideCidr")
        if text:
            yield f"tunnel{end}InsideCidr", IPv4Network(text, strict=False)


def _inside(call: Call) -> None:
    """Check inner ranges: /30s of link-local addresses that AWS does not reserve, each once per gateway."""
    gateway = call.text("vpnGatewayId") or call.text("transitGatewayId")
    used = {
        str(other.outputs.get(f"tunnel{end}InsideCidr")): other.id
        for other in others(call)
        for end in _ENDS
        if gateway and gateway in (other.inputs.get("vpnGatewayId"), other.inputs.get("transitGatewayId"))
    }
    for path, range_ in _inside_ranges(call):
        if range_.prefixlen != TUNNEL_PREFIX or str(range_) != call.text(path) or not _CLOUD.takes(range_):
            raise refused(
                "InvalidParameterValue",
                f"Invalid value '{call.text(path)}' for TunnelInsideCidr.",
                f"a /{TUNNEL_PREFIX} of {LINK_LOCAL} without {', '.join(map(str, _CLOUD.kept))}",
                path,
            )
        if str(range_) in used:
            raise refused(
                "InvalidParameterValue",
                f"The TunnelInsideCidr {range_} is already in use by {used[str(range_)]}",
                f"each tunnel of {gateway} needs a separate range",
                path,
            )
        used[str(range_)] = f"the other tunnel of {call.id}"


def _keys(call: Call) -> None:
    for end in _ENDS:
        key = call.text(f"tunnel{end}PresharedKey")
        if key and not _PRE_SHARED.fullmatch(key):
            raise refused(
                "InvalidParameterValue",
                f"Invalid value for tunnel{end}PresharedKey",
                "use 8 to 64 of a-z, A-Z, 0-9, dots and underscores, not starting with 0",
                f"tunnel{end}PresharedKey",
            )


def _one_gateway(call: Call) -> None:
    given = [name for name in ("vpnGatewayId", "transitGatewayId") if call.inputs.get(name)]
    if len(given) > 1:
        raise refused("", f'"{given[0]}": conflicts with {given[1]}', "a connection ends at one gateway")


def _two_asns(call: Call) -> None:
    """Refuse ends with one ASN: AWS has no internal BGP ("CreateVpnConnection")."""
    gateway, router = call.target("vpnGatewayId"), call.target("customerGatewayId")
    own = str(gateway.outputs["amazonSideAsn"]) if gateway else ""
    if router and own in (str(router.inputs.get(name)) for name in ("bgpAsn", "bgpAsnExtended")):
        raise refused(
            "InvalidParameterValue",
            "The ASN of the specified customer gateway and virtual private gateway are the same.",
            f"both have {own}; give the router or the gateway another",
        )


def _tunnel(call: Call, end: int) -> Properties:
    name, seed = f"tunnel{end}", digest(f"{call.id} {end}")
    old = call.old.outputs if call.old else {}
    # AWS chooses a range when the program sets none.
    default = f"169.254.{16 + int(seed[:2], 16) % 200}.{int(seed[2:4], 16) // 4 * 4}/{TUNNEL_PREFIX}"
    inside = ip_network(call.text(f"{name}InsideCidr") or old.get(f"{name}InsideCidr") or default)
    gateway = call.target("vpnGatewayId")
    customer = call.target("customerGatewayId")
    by_certificate = customer is not None and customer.inputs.get("certificateArn")
    key = {} if call.text(f"{name}PresharedKey") or by_certificate else {f"{name}PresharedKey": Secret(f"x{seed[:31]}")}
    return {
        f"{name}Address": public_address(call, f"{call.id} {end}", f"{name}Address"),
        f"{name}InsideCidr": str(inside),
        f"{name}VgwInsideAddress": str(inside[1]),
        f"{name}CgwInsideAddress": str(inside[2]),
        f"{name}BgpAsn": str(gateway.outputs["amazonSideAsn"]) if gateway else str(_CLOUD.asn),
        f"{name}BgpHoldtime": 30,
        **key,
    }


def _connection_outputs(call: Call) -> Properties:
    tunnels: Properties = {}
    for end in _ENDS:
        tunnels |= _tunnel(call, end)
    if tunnels["tunnel1Address"] == tunnels["tunnel2Address"]:
        tunnels["tunnel2Address"] = str(IPv4Address(tunnels["tunnel1Address"]) + 1)
    return {
        "arn": arn(call, "ec2", f"vpn-connection/{call.id}"),
        "routes": [],
        "vgwTelemetries": [],
        "customerGatewayConfiguration": Secret(f'<vpn_connection id="{call.id}"/>'),
        **tags(call),
        **tunnels,
    }


_connection = ResourceType(
    token=_CONNECTION,
    noun="vpnConnection",
    code="InvalidVpnConnectionID",
    identify=generated_id("vpn"),
    outputs=_connection_outputs,
    where=("region",),
    replace_on=(
        *("enableAcceleration", "staticRoutesOnly", "type", "tunnelInsideIpVersion", "outsideIpAddressType"),
        *("transportTransitGatewayAttachmentId", "presharedKeyStorage"),
        *(f"tunnel{end}Inside{version}" for end in _ENDS for version in ("Cidr", "Ipv6Cidr")),
    ),
    references=(
        Reference("vpnGatewayId", (VPN_GATEWAY,)),
        Reference("customerGatewayId", (CUSTOMER_GATEWAY,)),
    ),
    refuse=(_one_gateway, _inside, _keys, _two_asns, _is_reachable),
)


def _attached(call: Call) -> None:
    gateway, table = call.target("vpnGatewayId"), call.target("routeTableId")
    if gateway and table and gateway.inputs.get("vpcId") != table.outputs.get("vpcId", table.id):
        raise refused(
            "Gateway.NotAttached",
            f"Virtual private gateway {gateway.id} is not attached to the VPC of {table.id}",
            f"attach it to {table.outputs.get('vpcId', table.id)} first",
        )


_propagation = ResourceType(
    token="aws:ec2/vpnGatewayRoutePropagation:VpnGatewayRoutePropagation",
    noun="route propagation",
    code="InvalidVpnGatewayID",
    identify=lambda call: f"{call.text('vpnGatewayId')}_{call.text('routeTableId')}",
    where=("region",),
    replace_on=("routeTableId", "vpnGatewayId"),
    references=(
        Reference("vpnGatewayId", (VPN_GATEWAY,)),
        Reference("routeTableId", (ROUTE_TABLE,), holds=False),
    ),
    refuse=(_attached,),
    upserts=True,
)

TYPES = (_gateway, _customer, _connection, _propagation)
