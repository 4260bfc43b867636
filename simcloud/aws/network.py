"""Networks of AWS. What replaces is as in terraform-provider-aws, on which the provider rests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from simcloud.aws.common import ec2, made_up
from simcloud.identifiers import digest
from simcloud.refusals import apart, inside, offered, size_of_range
from simcloud.rules import Call, Naming, Place, Reason, Reference, ResourceType, Saying
from simcloud.values import Properties

VPC = "aws:ec2/vpc:Vpc"
SUBNET = "aws:ec2/subnet:Subnet"
SECURITY_GROUP = "aws:ec2/securityGroup:SecurityGroup"
ROUTE_TABLE = "aws:ec2/routeTable:RouteTable"
GATEWAY = "aws:ec2/internetGateway:InternetGateway"

IN_VPC = Reference("vpcId", (VPC,))


def _beside(prefix: str) -> Callable[[Call], str]:
    """Ids of what comes with a VPC."""
    return lambda call: f"{prefix}-0{digest(call.id + prefix)[:16]}"


def _with_vpc(outputs: Properties) -> Iterable[tuple[str, str]]:
    yield SECURITY_GROUP, outputs["defaultSecurityGroupId"]
    yield ROUTE_TABLE, outputs["mainRouteTableId"]


def _zone(call: Call) -> str:
    return call.offers.zones("aws", call.region)[0]


def _places(call: Call) -> Iterable[Place]:
    zone = call.text("availabilityZone")
    return [Place("aws", call.region, zone=zone)] if zone else []


_vpc = ResourceType(
    token=VPC,
    noun="vpc",
    code="InvalidVpcID",
    identify=made_up("vpc"),
    outputs=ec2(
        "vpc",
        instanceTenancy=lambda _: "default",
        enableDnsSupport=lambda call: call.inputs.get("enableDnsSupport", True),
        defaultSecurityGroupId=_beside("sg"),
        defaultNetworkAclId=_beside("acl"),
        defaultRouteTableId=_beside("rtb"),
        mainRouteTableId=_beside("rtb"),
        dhcpOptionsId=_beside("dopt"),
    ),
    where=("region",),
    replace_on=("cidrBlock", "ipv4IpamPoolId", "ipv4NetmaskLength"),
    replace_if={"instanceTenancy": lambda _, new: new != "default"},
    refuse=(size_of_range("cidrBlock", 16, 28),),
    implied=_with_vpc,
    says={
        Reason.BAD_RANGE: Saying(
            "api error InvalidVpc.Range: The CIDR '{value}' is invalid.",
            "use a network between /{shortest} and /{longest} without host bits",
        )
    },
)

_subnet = ResourceType(
    token=SUBNET,
    noun="subnet",
    code="InvalidSubnetID",
    identify=made_up("subnet"),
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
    token=GATEWAY,
    noun="internetGateway",
    code="InvalidInternetGatewayID",
    identify=made_up("igw"),
    outputs=ec2("internet-gateway"),
    where=("region",),
    references=(IN_VPC,),
)

_route_table = ResourceType(
    token=ROUTE_TABLE,
    noun="routeTable",
    code="InvalidRouteTableID",
    identify=made_up("rtb"),
    outputs=ec2("route-table"),
    where=("region",),
    replace_on=("vpcId",),
    references=(IN_VPC, Reference("routes[].gatewayId", (GATEWAY,))),
)

_association = ResourceType(
    token="aws:ec2/routeTableAssociation:RouteTableAssociation",
    noun="association",
    code="InvalidAssociationID",
    identify=made_up("rtbassoc"),
    where=("region",),
    replace_on=("subnetId", "gatewayId"),
    references=(Reference("subnetId", (SUBNET,)), Reference("routeTableId", (ROUTE_TABLE,))),
)

_security_group = ResourceType(
    token=SECURITY_GROUP,
    noun="security group",
    code="InvalidGroup",
    identify=made_up("sg"),
    outputs=ec2("security-group"),
    where=("region",),
    naming=Naming(
        "name",
        # A name that begins with sg- is taken for an id.
        re.compile(r"(?!sg-)[a-zA-Z0-9 ._\-:/()#,@\[\]+=&;{}!$*]+"),
        255,
        "it may not begin with sg-, nor have other than a-z, A-Z, 0-9, spaces, and ._-:/()#,@[]+=&;{}!$*",
        within=("vpcId",),
    ),
    replace_on=("name", "namePrefix", "description", "vpcId"),
    references=(
        IN_VPC,
        Reference("ingress[].securityGroups[]", (SECURITY_GROUP,)),
        Reference("egress[].securityGroups[]", (SECURITY_GROUP,)),
    ),
    says={
        Reason.TAKEN: Saying(
            "api error InvalidGroup.Duplicate: The security group '{name}' already exists for VPC '{parent}'",
            "choose another name, import the existing one, or delete it",
        ),
        Reason.MISSING: Saying(
            "api error InvalidGroup.NotFound: The security group '{value}' does not exist",
            "{path} must name something that exists in {region}",
        ),
        Reason.IN_USE: Saying(
            "api error DependencyViolation: resource {value} has a dependent object",
            "delete first: {users}",
        ),
    },
)

_ingress_rule = ResourceType(
    token="aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
    noun="security group rule",
    code="InvalidSecurityGroupRuleId",
    identify=made_up("sgr"),
    outputs=ec2("security-group-rule", securityGroupRuleId=lambda call: call.id),
    where=("region",),
    replace_on=("securityGroupId",),
    references=(
        # Rules go with their group; a rule holds the group that it lets in.
        Reference("securityGroupId", (SECURITY_GROUP,), holds=False),
        Reference("referencedSecurityGroupId", (SECURITY_GROUP,)),
    ),
)

_egress_rule = replace(_ingress_rule, token="aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule")

TYPES = (_vpc, _subnet, _gateway, _route_table, _association, _security_group, _ingress_rule, _egress_rule)
