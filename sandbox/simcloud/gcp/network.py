"""Networks of Google Cloud. The replacement rules come from terraform-provider-google, on which the provider is based."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, ip_network

from sandbox.simcloud.gcp.addresses import busy, first_free, fits, literal, reserved, subnetwork_of
from sandbox.simcloud.gcp.common import (
    GLOBAL,
    REGIONAL,
    bare,
    between,
    compute,
    is_in,
    kept,
    network_of,
    numbered,
    one_of,
    priority,
)
from sandbox.simcloud.gcp.tokens import FORWARDING_RULE, INSTANCE, NETWORK, SUBNETWORK, TUNNEL
from sandbox.simcloud.gcp.words import invalid
from sandbox.simcloud.identifiers import digest
from sandbox.simcloud.refusals import apart, apart_within, networks, size_of_range
from sandbox.simcloud.rules import Call, Reference
from sandbox.simcloud.values import Value, at

# "Subnets", Virtual Private Cloud: "Prohibited IPv4 subnet ranges".
_FORBIDDEN = (
    *("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "255.255.255.255/32"),
    *("199.36.153.4/30", "199.36.153.8/30"),
)

IN_NETWORK = Reference("network", (NETWORK,), resolve=bare)
IN_SUBNETWORK = Reference("subnetwork", (SUBNETWORK,), resolve=bare)


def _shrinks(old: Value, new: Value) -> bool:
    """Whether the range changes otherwise than to a wider one, which forces replacement."""
    wider = list(networks([new]))
    return bool(wider) and not all(network.subnet_of(wider[0]) for network in networks([old]))


def _first_address(call: Call) -> str:
    return str(ip_network(call.text("ipCidrRange"))[1])


def _allowed_range(call: Call) -> None:
    for path in ("ipCidrRange", "secondaryIpRanges[].ipCidrRange"):
        for network in networks(at(call.inputs, path)):
            wrong = next((text for text in _FORBIDDEN if network.overlaps(IPv4Network(text))), None)
            if wrong:
                raise invalid(path, str(network), f"It overlaps the prohibited range {wrong}.", "use a private range")


def _public(seed: str) -> str:
    """Return an address from Google's range for public addresses of machines."""
    return str(IPv4Address("34.64.0.0") + int(digest(seed)[:5], 16))


def _address_of(call: Call) -> str:
    """Return the address that Google chooses when none is given."""
    if call.text("addressType") != "INTERNAL":
        return str(kept(call, "address", lambda: _public(call.id)))
    subnetwork = subnetwork_of(call, call.text("subnetwork"))
    return str(kept(call, "address", lambda: first_free(call, subnetwork) if subnetwork else ""))


def _address(call: Call) -> None:
    """Check that an internal address is in its subnetwork, and free."""
    if call.text("addressType") != "INTERNAL":
        for name in ("subnetwork", "network"):
            if call.inputs.get(name):
                raise invalid(name, call.text(name), "External addresses have none.", "set addressType to INTERNAL")
        return
    subnetwork = subnetwork_of(call, call.text("subnetwork"))
    if subnetwork is None:
        if call.text("purpose") in ("", "GCE_ENDPOINT", "SHARED_LOADBALANCER_VIP"):
            raise invalid("subnetwork", "", "Internal addresses need a subnetwork.", "set subnetwork")
        return
    given = literal(call.text("address"))
    if given:
        fits(call, "address", given, subnetwork)
        other = reserved(call, subnetwork).get(str(given))
        if other and other.id != call.id:
            raise busy(given, other)


def _global_address(call: Call) -> None:
    """Check an address for Private Service Connect: in its network, and outside every subnetwork ("About accessing Google APIs
    through endpoints").
    """
    if call.text("addressType") != "INTERNAL":
        return
    purpose = call.text("purpose")
    if purpose not in ("VPC_PEERING", "PRIVATE_SERVICE_CONNECT"):
        raise invalid(
            "purpose",
            purpose,
            "Invalid purpose for a global internal address.",
            "use VPC_PEERING or PRIVATE_SERVICE_CONNECT",
        )
    if not call.inputs.get("network"):
        raise invalid("network", "", "Global internal addresses need a network.", "set network")
    own = call.target("network")
    for record in call.world.of_type(SUBNETWORK):
        ranges = [*at(record.inputs, "ipCidrRange"), *at(record.inputs, "secondaryIpRanges[].ipCidrRange")]
        if own and network_of(call, record) == own.id and any(is_in(call.text("address"), str(r)) for r in ranges):
            raise invalid("address", call.text("address"), f"It is in subnetwork '{record.id}'.", "use one outside")


def _global_address_of(call: Call) -> str:
    return str(kept(call, "address", lambda: _public(call.id)))


def _hops(call: Call) -> None:
    one_of("nextHopGateway", "nextHopIlb", "nextHopInstance", "nextHopIp", "nextHopVpnTunnel")(call)
    for text in at(call.inputs, "destRange"):
        if not list(networks([text])):
            raise invalid("destRange", str(text), "Must be a CIDR address range.", "leave no host bits")


def network_link(call: Call) -> str:
    """Return the self link of the call's network."""
    network = call.target("network")
    return str(network.outputs["selfLink"]) if network else ""


_network = compute(
    "Network",
    "network",
    "networks",
    where=GLOBAL,
    computed={
        "numericId": numbered,
        "networkId": numbered,
        "routingMode": lambda _: "REGIONAL",
        "mtu": lambda _: 1460,
    },
    replace_on=("autoCreateSubnetworks", "description", "internalIpv6Range", "networkProfile", "params"),
    # "MTU", Virtual Private Cloud.
    refuse=(between("mtu", 1300, 8896),),
)

_subnetwork = compute(
    "Subnetwork",
    "subnetwork",
    "subnetworks",
    where=REGIONAL,
    computed={
        "gatewayAddress": _first_address,
        "subnetworkId": numbered,
        "purpose": lambda _: "PRIVATE",
        "stackType": lambda _: "IPV4_ONLY",
    },
    replace_on=(
        *("network", "description", "externalIpv6Prefix", "internalIpv6Prefix", "params"),
        *("reservedInternalRange", "resolveSubnetMask"),
    ),
    replace_if={"ipCidrRange": _shrinks},
    references=(IN_NETWORK,),
    refuse=(
        size_of_range("ipCidrRange", 4, 29),
        size_of_range("secondaryIpRanges[].ipCidrRange", 4, 29),
        _allowed_range,
        apart_within("ipCidrRange", "secondaryIpRanges[].ipCidrRange"),
        apart("network", "ipCidrRange", "secondaryIpRanges[].ipCidrRange"),
    ),
)

_address_type = compute(
    "Address",
    "address",
    "addresses",
    where=REGIONAL,
    computed={
        "addressType": lambda _: "EXTERNAL",
        "address": _address_of,
        "addressId": numbered,
        "purpose": lambda call: "GCE_ENDPOINT" if call.text("addressType") == "INTERNAL" else "",
    },
    replace_on=(
        *("address", "addressType", "description", "ipCollection", "ipVersion", "ipv6EndpointType"),
        *("network", "networkTier", "prefixLength", "purpose", "subnetwork"),
    ),
    references=(IN_NETWORK, IN_SUBNETWORK),
    refuse=(_address,),
)

_global_address_type = compute(
    "GlobalAddress",
    "address",
    "addresses",
    where=GLOBAL,
    computed={"addressType": lambda _: "EXTERNAL", "address": _global_address_of},
    replace_on=(*("address", "addressType", "description", "ipVersion", "network", "prefixLength", "purpose"),),
    references=(IN_NETWORK,),
    refuse=(_global_address,),
)

_route = compute(
    "Route",
    "route",
    "routes",
    where=GLOBAL,
    computed={"priority": lambda _: 1000, "nextHopNetwork": network_link},
    replace_on=(
        *("destRange", "network", "description", "nextHopGateway", "nextHopIlb", "nextHopInstance", "nextHopIp"),
        *("nextHopVpnTunnel", "params", "priority", "tags", "nextHopInstanceZone"),
    ),
    references=(
        IN_NETWORK,
        Reference("nextHopInstance", (INSTANCE,), resolve=bare),
        Reference("nextHopVpnTunnel", (TUNNEL,), resolve=bare),
        Reference("nextHopIlb", (FORWARDING_RULE,), resolve=bare, optional=True),
    ),
    refuse=(_hops, priority),
)


TYPES = (_network, _subnetwork, _address_type, _global_address_type, _route)
