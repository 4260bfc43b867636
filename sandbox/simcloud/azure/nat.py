"""NAT gateways and route tables, which carry the outbound traffic of subnets."""

from __future__ import annotations

from collections.abc import Iterable

from sandbox.simcloud.azure.addresses import PUBLIC_ADDRESS, ZONES_STAY
from sandbox.simcloud.azure.common import find, network_name, outputs, parts, sole_user, under_group
from sandbox.simcloud.azure.resources import IN_GROUP
from sandbox.simcloud.azure.words import BAD_REQUEST, refused
from sandbox.simcloud.refusals import offered
from sandbox.simcloud.rules import Call, Place, Reason, Reference, ResourceType, Saying
from sandbox.simcloud.values import at

NAT_GATEWAY = "azure-native:network:NatGateway"
ROUTE_TABLE = "azure-native:network:RouteTable"

_HOPS = {"VirtualNetworkGateway", "VnetLocal", "Internet", "VirtualAppliance", "None"}


def _zones(call: Call) -> Iterable[Place]:
    return [Place("azure", call.region, str(zone)) for zone in at(call.inputs, "zones[]")]


def _has_one_zone(call: Call) -> None:
    """Check that a Standard gateway is in at most one zone; StandardV2 spans all ("NAT gateway and availability zones")."""
    zones = list(at(call.inputs, "zones[]"))
    if not call.text("sku.name").startswith("Standard"):
        raise refused(BAD_REQUEST, f"{call.id} must have the SKU Standard.", "set sku.name to Standard")
    if len(zones) > 1 and call.text("sku.name") == "Standard":
        raise refused(
            BAD_REQUEST, f"{call.id} is in zones {', '.join(zones)}; a NAT gateway is in one.", "leave out zones"
        )


def _has_standard_addresses(call: Call) -> None:
    """Check that public addresses have the gateway's SKU ("Azure NAT Gateway resource": only Standard addresses)."""
    for text in at(call.inputs, "publicIpAddresses[].id"):
        address = find(call, (PUBLIC_ADDRESS,), text)
        sku = next(at(address.inputs, "sku.name"), "Basic") if address else ""
        if sku != call.text("sku.name"):
            raise refused(
                BAD_REQUEST,
                f"Public IP address {text} has the SKU {sku}; NAT gateway {call.id} takes {call.text('sku.name')}.",
                "give both the same SKU",
            )


def _routes_lead_somewhere(call: Call) -> None:
    prefixes: dict[str, str] = {}
    for route in call.inputs.get("routes") or ():
        name, hop, prefix = str(route.get("name")), str(route.get("nextHopType")), str(route.get("addressPrefix"))
        if hop not in _HOPS:
            raise refused(BAD_REQUEST, f"Route {name} has the next hop {hop}.", f"one of {', '.join(sorted(_HOPS))}")
        if (hop == "VirtualAppliance") != bool(route.get("nextHopIpAddress")):
            raise refused(
                BAD_REQUEST,
                f"Route {name}: nextHopIpAddress goes with the next hop VirtualAppliance, and only with it.",
                "set both or neither",
            )
        if prefix in prefixes:
            raise refused(
                BAD_REQUEST, f"Routes {prefixes[prefix]} and {name} have the same prefix {prefix}.", "leave one out"
            )
        prefixes[prefix] = name


_nat_gateway = ResourceType(
    token=NAT_GATEWAY,
    noun="NAT gateway",
    identify=under_group("Microsoft.Network/natGateways"),
    outputs=outputs("Microsoft.Network/natGateways"),
    naming=network_name("natGatewayName"),
    where=("location",),
    replace_on=("resourceGroupName", "natGatewayName"),
    fixed=("zones", "sku"),
    recomputed=("etag",),
    references=(IN_GROUP, Reference("publicIpAddresses[].id", (PUBLIC_ADDRESS,))),
    refuse=(
        _has_one_zone,
        _has_standard_addresses,
        sole_user(
            "publicIpAddresses[].id",
            "PublicIPAddressInUse",
            "Resource {id} is referencing public IP address {value} that is already allocated to resource {user}.",
        ),
        offered(_zones),
    ),
    says={
        Reason.FIXED: ZONES_STAY,
        Reason.IN_USE: Saying(
            'Status=400 Code="InUseNatGatewayCannotBeDeleted" Message="NAT gateway {value} is in use by {user} and '
            'cannot be deleted."',
            "remove it first from: {users}",
        ),
    },
)

_route_table = ResourceType(
    token=ROUTE_TABLE,
    noun="Route table",
    identify=under_group("Microsoft.Network/routeTables"),
    outputs=outputs("Microsoft.Network/routeTables", routes=lambda call: parts(call, "routes")),
    naming=network_name("routeTableName"),
    where=("location",),
    replace_on=("resourceGroupName", "routeTableName"),
    recomputed=("etag",),
    references=(IN_GROUP,),
    refuse=(_routes_lead_somewhere,),
    says={
        Reason.IN_USE: Saying(
            'Status=400 Code="InUseRouteTableCannotBeDeleted" Message="Route table {value} is in use and cannot be '
            'deleted."',
            "remove it first from: {users}",
        )
    },
)

TYPES = (_nat_gateway, _route_table)
