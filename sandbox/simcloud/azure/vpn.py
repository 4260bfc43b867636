"""VPN gateways. Rules from "VPN Gateway FAQ", "About VPN Gateway configuration settings", "About BGP and VPN Gateway"."""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv4Address, IPv4Network

from cluster.spec import Cloud
from cluster.vpn import GATEWAYS
from sandbox.simcloud.azure.addresses import KEPT_FIRST, PUBLIC_ADDRESS, SUBNET, range_of
from sandbox.simcloud.azure.common import find, network_name, outputs, parts, section, sole_user, under_group
from sandbox.simcloud.azure.network import GATEWAY_SUBNET
from sandbox.simcloud.azure.resources import IN_GROUP
from sandbox.simcloud.azure.words import BAD_REQUEST, refused
from sandbox.simcloud.rules import Call, Reason, Reference, ResourceType, Saying
from sandbox.simcloud.values import Properties, at

GATEWAY = "azure-native:network:VirtualNetworkGateway"
SITE = "azure-native:network:LocalNetworkGateway"
CONNECTION = "azure-native:network:VirtualNetworkGatewayConnection"

OWN_ASN = GATEWAYS[Cloud.AZURE].asn

_WIDEST_NEEDED = 27
_SKU = re.compile(r"Basic|VpnGw[1-5](AZ)?")
_IN_LINK_LOCAL = IPv4Network("169.254.0.0/16")
# Printable ASCII except space, hyphen and tilde.
_KEY = re.compile(r"[!-,.-}]{1,128}")


def _is_apipa(text: str) -> bool:
    return GATEWAYS[Cloud.AZURE].takes(IPv4Network(text))


def _subnet_is_gateway_subnet(call: Call) -> None:
    for text in at(call.inputs, "ipConfigurations[].subnet.id"):
        network = range_of(call, text)
        if text.rpartition("/")[2] != GATEWAY_SUBNET:
            raise refused(
                "InvalidSubnetNameForGateway",
                f"Subnet {text} of gateway {call.id} must be named {GATEWAY_SUBNET}.",
                f"create one with the name {GATEWAY_SUBNET}",
            )
        if network and network.prefixlen > _WIDEST_NEEDED and call.text("sku.name") != "Basic":
            raise refused(
                BAD_REQUEST,
                f"{GATEWAY_SUBNET} {network} is too small for gateway {call.id}.",
                f"it is /{_WIDEST_NEEDED} or wider",
            )


def _is_former(sku: str) -> bool:
    """Whether a SKU is one of those that only gateways from before November 2025 have."""
    return sku.startswith("VpnGw") and not sku.endswith("AZ")


def _sku_is_possible(call: Call) -> None:
    name, tier = call.text("sku.name"), call.text("sku.tier")
    if not _SKU.fullmatch(name) or tier != name:
        raise refused(
            BAD_REQUEST,
            f"Gateway {call.id} has the SKU {name} of the tier {tier}.",
            "set both to the same, for example VpnGw1AZ",
        )
    if _is_former(name) and not (call.old and _is_former(str(next(at(call.old.inputs, "sku.name"), "")))):
        raise refused(
            "NonAzSkusNotAllowedForVPNGateway",
            "VpnGw1-5 non-AZ SKUs are no longer supported for VPN gateways. Only VpnGw1-5AZ SKUs can be created going "
            "forward.",
            f"use {name}AZ",
        )
    if call.text("gatewayType") != "Vpn" or call.text("vpnType") == "PolicyBased":
        raise refused(
            BAD_REQUEST, f"Gateway {call.id} is not a route-based VPN gateway.", "set gatewayType and vpnType"
        )
    if name == "Basic" and (call.inputs.get("enableBgp") or call.inputs.get("activeActive")):
        raise refused(BAD_REQUEST, "The SKU Basic has neither BGP nor active-active mode.", "use VpnGw1AZ")
    for text in at(call.inputs, "ipConfigurations[].publicIPAddress.id"):
        address = find(call, (PUBLIC_ADDRESS,), text)
        zones = list(at(address.inputs, "zones[]")) if address else []
        if zones and not name.endswith("AZ"):
            raise refused(
                "RegionalVmssVpnGatewayPublicIpsMustNotHaveZonesConfigured",
                "Standard Public IPs associated with VPN gateways with non-AZ VPN skus cannot have zones configured.",
                f"{text} has zones: use VpnGw1AZ, or an address without zones",
            )
        if address and not zones and name.endswith("AZ") and call.offers.zones("azure", call.region):
            raise refused(
                "VmssVpnGatewayPublicIpsMustHaveZonesConfigured",
                "Standard Public IPs associated with VPN Gateways with AZ VPN skus must have zones configured.",
                f"set zones of {text}",
            )


def _configurations_match(call: Call) -> None:
    number = len(list(at(call.inputs, "ipConfigurations[]")))
    if call.inputs.get("activeActive") and number < 2:
        raise refused(
            "ActiveActiveGatewayMustHaveTwoIpConfigurations",
            f"Active-active gateway {call.id} must have two IP configurations with a public address each.",
            f"it has {number}",
        )
    if number != 1 and not call.inputs.get("activeActive"):
        raise refused(
            BAD_REQUEST, f"Gateway {call.id} is not active-active and has {number} IP configurations.", "it has one"
        )


def _bgp_is_possible(call: Call) -> None:
    asn = next(at(call.inputs, "bgpSettings.asn"), None)
    kept = GATEWAYS[Cloud.AZURE].asns - {OWN_ASN}
    if asn is not None and (int(asn) in kept or not 0 < int(asn) < 2**32):
        raise refused(
            BAD_REQUEST, f"ASN {asn} of gateway {call.id} is reserved.", f"leave it out: it is then {OWN_ASN}"
        )
    own = {f"{call.id}/ipConfigurations/{part.get('name')}".lower() for part in at(call.inputs, "ipConfigurations[]")}
    for address in at(call.inputs, "bgpSettings.bgpPeeringAddresses[]"):
        if str(address.get("ipconfigurationId")).lower() not in own:
            raise call.refusal(
                Reason.MISSING,
                path="bgpSettings.bgpPeeringAddresses[].ipconfigurationId",
                value=str(address.get("ipconfigurationId")),
                by=call.id,
            )
        for text in address.get("customBgpIpAddresses") or ():
            if not _is_apipa(text):
                raise refused(
                    BAD_REQUEST,
                    f"Custom BGP address {text} of gateway {call.id} is outside the range that Azure takes.",
                    "use 169.254.21.0 to 169.254.22.255",
                )


def _bgp(call: Call) -> Properties:
    """Return the gateway's BGP settings.

    A single instance has the last but one address of GatewaySubnet; two instances have the first addresses that Azure does
    not reserve ("How to configure BGP for VPN Gateway").
    """
    given = section(call, "bgpSettings")
    custom = {str(row.get("ipconfigurationId")).lower(): row for row in given.get("bgpPeeringAddresses") or ()}
    listed, peers = [], []
    for i, part in enumerate(parts(call, "ipConfigurations")):
        network = range_of(call, next(at(part, "subnet.id"), ""))
        public = find(call, (PUBLIC_ADDRESS,), next(at(part, "publicIPAddress.id"), ""))
        index = KEPT_FIRST + i if call.inputs.get("activeActive") else -2
        peers.append(str(network[index]) if network else "")
        listed.append(
            {
                "ipconfigurationId": part["id"],
                "defaultBgpIpAddresses": [peers[-1]],
                "customBgpIpAddresses": custom.get(part["id"].lower(), {}).get("customBgpIpAddresses") or [],
                "tunnelIpAddresses": [public.outputs["ipAddress"]] if public else [],
            }
        )
    return {
        "asn": OWN_ASN,
        "peerWeight": 0,
        **given,
        "bgpPeeringAddress": ",".join(peers),
        "bgpPeeringAddresses": listed,
    }


def _site_is_possible(call: Call) -> None:
    asn = next(at(call.inputs, "bgpSettings.asn"), None)
    if asn is not None and int(asn) in GATEWAYS[Cloud.AZURE].asns:
        raise refused(
            BAD_REQUEST,
            f"ASN {asn} of local network gateway {call.id} is reserved by Azure or IANA.",
            "use a private ASN such as 64512",
        )
    address, name = call.text("gatewayIpAddress"), call.text("fqdn")
    if bool(address) == bool(name):
        raise refused(
            BAD_REQUEST, f"{call.id} has {'both' if name else 'neither'} gatewayIpAddress and fqdn.", "set one"
        )
    peer = call.text("bgpSettings.bgpPeeringAddress")
    for text in filter(None, (address, peer)):
        try:
            IPv4Address(text)
        except AddressValueError:
            raise refused(
                BAD_REQUEST, f"'{text}' of {call.id} is not an IPv4 address.", "write an IPv4 address"
            ) from None
    if address and address == peer:
        raise refused(
            BAD_REQUEST,
            f"The BGP address of {call.id} is the public address of its device.",
            "use an address inside the tunnel",
        )
    if peer and IPv4Address(peer) in _IN_LINK_LOCAL and not _is_apipa(peer):
        raise refused(
            BAD_REQUEST,
            f"BGP address {peer} of {call.id} is outside what Azure takes.",
            "use 169.254.21.0 to 169.254.22.255",
        )
    if asn is None and not list(at(call.inputs, "localNetworkAddressSpace.addressPrefixes[]")):
        raise refused(BAD_REQUEST, f"{call.id} has no address space and no BGP.", "set one of them")


def _connection_is_possible(call: Call) -> None:
    gateway, site = call.target("virtualNetworkGateway1.id"), call.target("localNetworkGateway2.id")
    if call.text("connectionType") != "IPsec" or site is None or gateway is None:
        raise refused(
            BAD_REQUEST, f"Connection {call.id} has no local network gateway, or not the type IPsec.", "set both"
        )
    key = call.text("sharedKey")
    if key and not _KEY.fullmatch(key):
        raise refused(
            BAD_REQUEST,
            f"The shared key of {call.id} must be up to 128 printable ASCII characters without space, hyphen and tilde.",
            "make another",
        )
    own, peer = next(at(gateway.outputs, "bgpSettings.asn"), None), next(at(site.inputs, "bgpSettings.asn"), None)
    if call.inputs.get("enableBgp") and not (gateway.inputs.get("enableBgp") and peer):
        raise refused(
            BAD_REQUEST, f"Connection {call.id} has BGP, but one of its ends does not.", "set enableBgp and bgpSettings"
        )
    if call.inputs.get("enableBgp") and own == peer:
        raise refused(BAD_REQUEST, f"Both ends of connection {call.id} have ASN {own}.", "use two")
    if len(list(at(call.inputs, "ipsecPolicies[]"))) > 1:
        raise refused(BAD_REQUEST, f"Connection {call.id} has more than one IPsec policy.", "choose one")


def _custom_addresses_belong_to_gateway(call: Call) -> None:
    gateway = call.target("virtualNetworkGateway1.id")
    addresses = (
        set(at(gateway.outputs, "bgpSettings.bgpPeeringAddresses[].customBgpIpAddresses[]")) if gateway else set()
    )
    for text in at(call.inputs, "gatewayCustomBgpIpAddresses[].customBgpIpAddress"):
        if text not in addresses:
            raise refused(
                BAD_REQUEST,
                f"Custom BGP address {text} of {call.id} is not one of its gateway's.",
                f"one of {sorted(addresses)}",
            )


def _pair_is_new(call: Call) -> None:
    ends = ("virtualNetworkGateway1.id", "localNetworkGateway2.id")
    for other in call.world.of_type(CONNECTION):
        if other.id != call.id and all(next(at(other.inputs, end), "") == call.text(end) for end in ends):
            raise refused(BAD_REQUEST, f"{call.id} joins the same two gateways as another connection.", f"{other} does")


_gateway = ResourceType(
    token=GATEWAY,
    noun="Virtual network gateway",
    identify=under_group("Microsoft.Network/virtualNetworkGateways"),
    outputs=outputs(
        "Microsoft.Network/virtualNetworkGateways",
        ipConfigurations=lambda call: parts(call, "ipConfigurations"),
        bgpSettings=_bgp,
    ),
    naming=network_name("virtualNetworkGatewayName"),
    where=("location",),
    replace_on=("resourceGroupName", "virtualNetworkGatewayName"),
    fixed=("gatewayType", "vpnType", "vpnGatewayGeneration", "extendedLocation"),
    recomputed=("etag",),
    references=(
        IN_GROUP,
        Reference("ipConfigurations[].subnet.id", (SUBNET,)),
        Reference("ipConfigurations[].publicIPAddress.id", (PUBLIC_ADDRESS,)),
    ),
    refuse=(
        _subnet_is_gateway_subnet,
        _sku_is_possible,
        _configurations_match,
        _bgp_is_possible,
        sole_user(
            "ipConfigurations[].publicIPAddress.id",
            "PublicIPAddressInUse",
            "Resource {id} is referencing public IP address {value} that is already allocated to resource {user}.",
        ),
        sole_user(
            "ipConfigurations[].subnet.id",
            BAD_REQUEST,
            "Subnet {value} has another gateway already: {user}.",
        ),
    ),
    says={
        Reason.IN_USE: Saying(
            'Status=400 Code="VirtualNetworkGatewayCannotBeDeleted" Message="Virtual network gateway {value} cannot be '
            'deleted: connection {user} uses it."',
            "delete first: {users}",
        )
    },
)

_site = ResourceType(
    token=SITE,
    noun="Local network gateway",
    identify=under_group("Microsoft.Network/localNetworkGateways"),
    outputs=outputs("Microsoft.Network/localNetworkGateways"),
    naming=network_name("localNetworkGatewayName"),
    where=("location",),
    replace_on=("resourceGroupName", "localNetworkGatewayName"),
    recomputed=("etag",),
    references=(IN_GROUP,),
    refuse=(_site_is_possible,),
)

_connection = ResourceType(
    token=CONNECTION,
    noun="Connection",
    identify=under_group("Microsoft.Network/connections"),
    outputs=outputs("Microsoft.Network/connections", connectionStatus=lambda _: "Unknown"),
    naming=network_name("virtualNetworkGatewayConnectionName"),
    where=("location",),
    replace_on=("resourceGroupName", "virtualNetworkGatewayConnectionName"),
    fixed=("connectionType", "connectionProtocol", "virtualNetworkGateway1", "localNetworkGateway2"),
    recomputed=("etag",),
    references=(
        IN_GROUP,
        Reference("virtualNetworkGateway1.id", (GATEWAY,)),
        Reference("localNetworkGateway2.id", (SITE,)),
    ),
    refuse=(_connection_is_possible, _custom_addresses_belong_to_gateway, _pair_is_new),
)

TYPES = (_gateway, _site, _connection)
