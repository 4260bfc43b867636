"""Networks of AWS. The replacement rules come from terraform-provider-aws, on which the provider is based."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from ipaddress import IPv4Network

from sandbox.simcloud.aws.common import ec2, generated_id, named, others, refused, vpc_of
from sandbox.simcloud.aws.tokens import (
    ENDPOINT,
    INTERFACE,
    INTERNET_GATEWAY,
    NAT_GATEWAY,
    ROUTE_TABLE,
    SECURITY_GROUP,
    SUBNET,
    VPC,
    VPN_GATEWAY,
)
from sandbox.simcloud.identifiers import digest
from sandbox.simcloud.refusals import apart, inside, networks, offered, size_of_range
from sandbox.simcloud.rules import Call, Place, Reason, Reference, ResourceType, Saying
from sandbox.simcloud.values import Properties, Value, at
from sandbox.simcloud.world import Record

IN_VPC = Reference("vpcId", (VPC,))

_DESTINATIONS = ("cidrBlock", "ipv6CidrBlock", "destinationPrefixListId")
# Properties of a route: only these may override the local route for part of the VPC.
_INSIDE = ("networkInterfaceId", "vpcEndpointId", "localGatewayId")
_WAYS = (
    *("gatewayId", "natGatewayId", "egressOnlyGatewayId", "transitGatewayId", "vpcPeeringConnectionId"),
    *("carrierGatewayId", "coreNetworkArn", "odbNetworkArn", *_INSIDE),
)


def _id_with_vpc(prefix: str) -> Callable[[Call], str]:
    """Return a function for the IDs of resources that come with a VPC."""
    return lambda call: f"{prefix}-0{digest(call.id + prefix)[:16]}"


def _with_vpc(outputs: Properties) -> Iterable[tuple[str, str]]:
    yield SECURITY_GROUP, outputs["defaultSecurityGroupId"]
    yield ROUTE_TABLE, outputs["mainRouteTableId"]


def _zone_name(call: Call, id_: str) -> str:
    """Return the zone with an ID such as ``use1-az6``. Really its letter differs between accounts; here it is the sixth."""
    place = id_.rpartition("-az")[2]
    if not place.isdecimal() or not 0 < int(place) <= 26:
        raise refused(
            "InvalidParameterValue", f"Value ({id_}) for parameter availabilityZoneId is invalid.", "write its id"
        )
    zones = call.offers.zones("aws", call.region)
    return zones[int(place) - 1] if int(place) <= len(zones) else f"{call.region}{chr(ord('a') + int(place) - 1)}"


def _zone(call: Call) -> str:
    id_ = call.text("availabilityZoneId")
    return _zone_name(call, id_) if id_ else call.offers.zones("aws", call.region)[0]


def _places(call: Call) -> Iterable[Place]:
    zone = call.text("availabilityZone")
    return [Place("aws", call.region, zone=zone)] if zone else []


def _one_per_vpc(call: Call) -> None:
    for other in others(call):
        if call.text("vpcId") and other.inputs.get("vpcId") == call.text("vpcId"):
            raise refused(
                "InvalidParameterValue",
                f"Network {call.text('vpcId')} already has an internet gateway attached",
                f"use {other.id}, or detach it",
            )


def _no_addresses_left(call: Call) -> None:
    """Refuse to delete an internet gateway while the VPC has resources with public addresses."""
    vpc = call.text("vpcId")
    for gateway in call.world.of_type(NAT_GATEWAY):
        is_public = gateway.inputs.get("connectivityType", "public") == "public"
        if vpc and is_public and _vpc_of_gateway(call, gateway) == vpc:
            raise refused(
                "DependencyViolation",
                f"Network {vpc} has some mapped public address(es). Please unmap those public address(es) before "
                "detaching the gateway.",
                f"delete first: {gateway}",
            )


def _vpc_of_gateway(call: Call, gateway: Record) -> str:
    """Return the VPC of a NAT gateway's subnet; a regional gateway has no subnet and names the VPC."""
    subnet = call.world.get(SUBNET, str(gateway.inputs.get("subnetId")))
    return vpc_of(subnet) if subnet else str(gateway.inputs.get("vpcId", ""))


def _target(route: Mapping[str, Value]) -> list[str]:
    return [name for name in _WAYS if route.get(name)]


def _routes(call: Call) -> None:
    """Check routes: each destination once, with one target, and not covered by the local route."""
    destinations: set[str] = set()
    vpc = call.target("vpcId") or call.target("defaultRouteTableId")
    own = list(networks(at(vpc.outputs, "cidrBlock"))) if vpc else []
    for route in at(call.inputs, "routes[]"):
        destination = str(next((route[name] for name in _DESTINATIONS if route.get(name)), ""))
        if len(_target(route)) != 1:
            raise refused(
                "InvalidParameterCombination",
                f"the route to {destination} names {len(_target(route))} targets",
                f"a route has exactly one of {', '.join(_WAYS)}",
            )
        if destination in destinations:
            raise refused(
                "RouteAlreadyExists",
                f"The route identified by {destination} already exists.",
                "a route table has one route to a destination",
            )
        destinations.add(destination)
        _not_local(destination, route, own)


def _not_local(destination: str, route: Mapping[str, Value], own: list[IPv4Network]) -> None:
    for network in networks([destination]):
        if any(network.subnet_of(outer) for outer in own) and not any(route.get(name) for name in _INSIDE):
            raise refused(
                "InvalidParameterValue",
                f"The destination CIDR block {destination} is equal to or more specific than one of this VPC's CIDR "
                "blocks. This route can target only an interface or an instance.",
                "leave it out: addresses in the VPC are reached by its local route",
            )


def _gateways_of_the_vpc(call: Call) -> None:
    vpc = call.target("vpcId") or call.target("defaultRouteTableId")
    for gateway in named(call, "routes[].gatewayId", "propagatingVgws[]"):
        if vpc and vpc_of(gateway) != vpc.id:
            raise refused(
                "InvalidParameterValue",
                f"route table {call.id} and network gateway {gateway.id} belong to different networks",
                f"attach the gateway to {vpc.id} first",
            )


def _in_one_network(call: Call) -> None:
    table, subnet = call.target("routeTableId"), call.target("subnetId")
    if table and subnet and vpc_of(table) != vpc_of(subnet):
        raise refused(
            "InvalidParameterValue",
            f"Route table {call.text('routeTableId')} and network {vpc_of(subnet)} belong to different networks",
            f"the route table must belong to {vpc_of(subnet)}",
        )


def _one_per_subnet(call: Call) -> None:
    for other in others(call):
        if call.text("subnetId") and other.inputs.get("subnetId") == call.text("subnetId"):
            raise refused(
                "Resource.AlreadyAssociated",
                f"the specified association for route table {call.text('routeTableId')} conflicts with an existing "
                "association",
                f"{other.id} gives the subnet {other.inputs.get('routeTableId')}; a subnet has one route table",
            )


_vpc = ResourceType(
    token=VPC,
    noun="vpc",
    code="InvalidVpcID",
    identify=generated_id("vpc"),
    outputs=ec2(
        "vpc",
        instanceTenancy=lambda _: "default",
        enableDnsSupport=lambda call: call.inputs.get("enableDnsSupport", True),
        defaultSecurityGroupId=_id_with_vpc("sg"),
        defaultNetworkAclId=_id_with_vpc("acl"),
        defaultRouteTableId=_id_with_vpc("rtb"),
        mainRouteTableId=_id_with_vpc("rtb"),
        dhcpOptionsId=_id_with_vpc("dopt"),
    ),
    where=("region",),
    replace_on=("cidrBlock", "ipv4IpamPoolId", "ipv4NetmaskLength"),
    replace_if={"instanceTenancy": lambda _, new: new != "default"},
    refuse=(size_of_range("cidrBlock", 16, 28),),
    implied=_with_vpc,
    says={
        Reason.FULL: Saying(
            "api error VpcLimitExceeded: The maximum number of VPCs has been reached.",
            "{have} are in {region}: ask for a larger quota than {most}",
        ),
        Reason.BAD_RANGE: Saying(
            "api error InvalidVpc.Range: The CIDR '{value}' is invalid.",
            "use a network between /{shortest} and /{longest} without host bits",
        ),
    },
)

_subnet = ResourceType(
    token=SUBNET,
    noun="subnet",
    code="InvalidSubnetID",
    identify=generated_id("subnet"),
    outputs=ec2("subnet", availabilityZone=_zone),
    where=("region",),
    replace_on=(
        *("vpcId", "cidrBlock", "availabilityZone", "availabilityZoneId", "ipv4IpamPoolId", "ipv4NetmaskLength"),
        *("ipv6IpamPoolId", "ipv6Native", "ipv6NetmaskLength", "outpostArn"),
    ),
    references=(IN_VPC,),
    refuse=(
        offered(_places),
        size_of_range("cidrBlock", 16, 28),
        inside("cidrBlock", "vpcId", "cidrBlock"),
        apart("vpcId", "cidrBlock"),
    ),
)

_gateway = ResourceType(
    token=INTERNET_GATEWAY,
    noun="internetGateway",
    code="InvalidInternetGatewayID",
    identify=generated_id("igw"),
    outputs=ec2("internet-gateway"),
    where=("region",),
    references=(IN_VPC,),
    refuse=(_one_per_vpc,),
    refuse_deletion=(_no_addresses_left,),
)

_route_table = ResourceType(
    token=ROUTE_TABLE,
    noun="routeTable",
    code="InvalidRouteTableID",
    identify=generated_id("rtb"),
    outputs=ec2("route-table"),
    where=("region",),
    replace_on=("vpcId",),
    references=(
        IN_VPC,
        # Internet gateways and VPN gateways share one property.
        Reference("routes[].gatewayId", (INTERNET_GATEWAY, VPN_GATEWAY)),
        # A route outlives its target, as a black hole.
        Reference("routes[].natGatewayId", (NAT_GATEWAY,), holds=False),
        Reference("routes[].networkInterfaceId", (INTERFACE,), holds=False),
        Reference("routes[].vpcEndpointId", (ENDPOINT,), holds=False),
    ),
    refuse=(_routes, _gateways_of_the_vpc),
)


def _with_its_vpc(call: Call) -> Properties:
    vpc = call.target("defaultRouteTableId")
    return {**ec2("route-table")(call), "vpcId": vpc.id if vpc else ""}


_default_table = replace(
    _route_table,
    token="aws:ec2/defaultRouteTable:DefaultRouteTable",
    identify=lambda call: call.text("defaultRouteTableId"),
    outputs=_with_its_vpc,
    replace_on=("defaultRouteTableId",),
    references=(
        # The provider adopts the table that came with the VPC, and releases it without deleting it.
        Reference("defaultRouteTableId", (ROUTE_TABLE,), holds=False),
        *_route_table.references[1:],
        Reference("propagatingVgws[]", (VPN_GATEWAY,), holds=False),
    ),
    upserts=True,
)

_association = ResourceType(
    token="aws:ec2/routeTableAssociation:RouteTableAssociation",
    noun="association",
    code="InvalidAssociationID",
    identify=generated_id("rtbassoc"),
    where=("region",),
    replace_on=("subnetId", "gatewayId"),
    references=(
        Reference("subnetId", (SUBNET,)),
        Reference("gatewayId", (INTERNET_GATEWAY, VPN_GATEWAY)),
        Reference("routeTableId", (ROUTE_TABLE,)),
    ),
    refuse=(_in_one_network, _one_per_subnet),
)

TYPES = (_vpc, _subnet, _gateway, _route_table, _default_table, _association)
