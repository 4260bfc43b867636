"""Networks of AWS: gateways, interfaces, endpoints, firewalls and VPNs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sandbox.simcloud.aws import tokens
from sandbox.simcloud.rules import RefusalError
from sandbox.simcloud.values import Secret
from sandbox.simcloud.world import SECURITY_GROUP_RULES
from tests.simcloud.aws_support import (
    ASSOCIATION,
    CONNECTION,
    DEFAULT_GROUP,
    FLOW_LOG,
    PROPAGATION,
    RULE,
    Region,
    policy,
)

Inputs = Callable[[Region], dict[str, Any]]


@pytest.fixture
def region(api: Any) -> Region:
    return Region(api("aws"))


def _nat(region: Region, called: str = "nat") -> Any:
    address = region.make(tokens.ADDRESS, f"{called}-address", domain="vpc")
    return region.make(tokens.NAT_GATEWAY, called, subnetId=region.a.id, allocationId=address.id)


def _vpn(region: Region, **inputs: Any) -> dict[str, Any]:
    gateway = region.make(tokens.VPN_GATEWAY, "vgw", vpcId=region.vpc.id)
    router = region.make(tokens.CUSTOMER_GATEWAY, "cgw", bgpAsn="65010", ipAddress="192.0.2.1", type="ipsec.1")
    return {"vpnGatewayId": gateway.id, "customerGatewayId": router.id, "type": "ipsec.1", **inputs}


def _rule(region: Region, **inputs: Any) -> dict[str, Any]:
    given = {"securityGroupId": region.group.id, "ipProtocol": "tcp", "fromPort": 443, "toPort": 443}
    return {**given, "cidrIpv4": "10.0.0.0/16", **inputs}


def _endpoint(region: Region, **inputs: Any) -> dict[str, Any]:
    given = {"vpcId": region.vpc.id, "vpcEndpointType": "Interface", "subnetIds": [region.a.id, region.b.id]}
    return {**given, "serviceName": "com.amazonaws.eu-west-1.secretsmanager", **inputs}


def _routes(*routes: dict[str, Any]) -> Inputs:
    return lambda region: {
        "vpcId": region.vpc.id,
        "routes": [
            {name: region.internet.id if text == "igw" else text for name, text in route.items()} for route in routes
        ],
    }


def test_addresses_and_gateways_refer_to_each_other(region: Region) -> None:
    nat = _nat(region)
    (address,) = region.aws.world.of_type(tokens.ADDRESS)
    assert address.outputs["allocationId"] == address.id
    assert (nat.outputs["publicIp"], nat.outputs["privateIp"]) == (address.outputs["publicIp"], "10.0.1.4")
    assert address.outputs["arn"] == f"arn:aws:ec2:eu-west-1:123456789012:elastic-ip/{address.id}"
    another = region.make(tokens.ADDRESS, "another")
    assert another.outputs["publicIp"] != address.outputs["publicIp"]
    assert region.aws.update(address, tags={"a": "b"}).outputs["publicIp"] == address.outputs["publicIp"]


def test_a_nat_gateway_without_a_public_address_needs_no_internet(region: Region) -> None:
    gateway = region.make(tokens.NAT_GATEWAY, subnetId=region.away.id, connectivityType="private")
    assert (gateway.outputs["privateIp"], gateway.outputs["publicIp"]) == ("10.1.1.4", "")


def test_a_rule_for_every_protocol_has_no_ports(region: Region) -> None:
    region.make(RULE, **_rule(region, ipProtocol="-1", fromPort=None, toPort=None))


def test_an_interface_has_the_requested_addresses_or_the_first_free_one(region: Region) -> None:
    requested = region.interface("requested", privateIps=["10.0.1.4"], securityGroups=[region.group.id])
    default = region.interface("default")
    assert (requested.outputs["privateIp"], default.outputs["privateIps"]) == ("10.0.1.4", ["10.0.1.5"])
    assert requested.outputs["privateDnsName"] == "ip-10-0-1-4.eu-west-1.compute.internal"
    assert region.aws.update(default, description="new").outputs["privateIp"] == "10.0.1.5"


def test_an_interface_endpoint_has_an_address_in_each_zone_and_a_gateway_endpoint_a_prefix_list(region: Region) -> None:
    inward = region.make(tokens.ENDPOINT, **_endpoint(region, privateDnsEnabled=True))
    assert [configuration["ipv4"] for configuration in inward.outputs["subnetConfigurations"]] == [
        "10.0.1.4",
        "10.0.2.4",
    ]
    assert inward.outputs["dnsEntries"][1]["dnsName"] == "secretsmanager.eu-west-1.amazonaws.com"
    s3 = region.make(
        tokens.ENDPOINT,
        "s3",
        vpcId=region.vpc.id,
        serviceName="com.amazonaws.eu-west-1.s3",
        routeTableIds=[region.table.id],
    )
    assert s3.outputs["prefixListId"].startswith("pl-")
    region.refuses(
        "InvalidIPAddress.InUse: Address 10.0.1.4 is in use.; vpce-",
        tokens.INTERFACE,
        "late",
        subnetId=region.a.id,
        privateIps=["10.0.1.4"],
    )


def test_a_connection_has_two_tunnels_with_an_address_for_each_end(region: Region) -> None:
    outputs = region.make(CONNECTION, **_vpn(region, tunnel1InsideCidr="169.254.100.0/30")).outputs
    assert (outputs["tunnel1VgwInsideAddress"], outputs["tunnel1CgwInsideAddress"]) == (
        "169.254.100.1",
        "169.254.100.2",
    )
    assert outputs["tunnel1Address"] != outputs["tunnel2Address"]
    assert outputs["tunnel2BgpAsn"] == "64512"
    assert outputs["tunnel2InsideCidr"].endswith("/30")
    assert isinstance(outputs["tunnel2PresharedKey"], Secret)
    assert isinstance(outputs["customerGatewayConfiguration"], Secret)


def test_a_connection_with_a_certificate_has_no_pre_shared_keys(region: Region) -> None:
    given = _vpn(region)
    arn = f"arn:aws:acm:{region.vpc.outputs['arn'].split(':')[3]}:123456789012:certificate/a"
    router = region.make(tokens.CUSTOMER_GATEWAY, "by-certificate", bgpAsn="65011", certificateArn=arn, type="ipsec.1")
    outputs = region.make(CONNECTION, **given | {"customerGatewayId": router.id}).outputs
    assert "tunnel1PresharedKey" not in outputs and "tunnel2PresharedKey" not in outputs


def test_a_secret_key_of_a_tunnel_stays_secret(region: Region) -> None:
    connection = region.make(CONNECTION, **_vpn(region, tunnel1PresharedKey=Secret("a.key_of_10")))
    assert connection.outputs["tunnel1PresharedKey"] == Secret("a.key_of_10")


def test_the_default_group_is_that_of_its_vpc_and_does_not_keep_it_from_deletion(region: Region) -> None:
    group = region.make(DEFAULT_GROUP, vpcId=region.vpc.id, ingress=[], egress=[])
    assert group.id == region.vpc.outputs["defaultSecurityGroupId"]
    assert group not in region.aws.world.users(region.vpc)


def test_each_zone_id_is_a_different_zone(region: Region) -> None:
    ids = region.aws.simulation.invoke(region.aws.settings, "aws:index/getAvailabilityZones:getAvailabilityZones", {})
    subnets = [
        region.make(tokens.SUBNET, id_, vpcId=region.vpc.id, cidrBlock=f"10.0.{9 + i}.0/24", availabilityZoneId=id_)
        for i, id_ in enumerate(ids["zoneIds"])
    ]
    assert [subnet.outputs["availabilityZone"] for subnet in subnets] == ids["names"]


REFUSED: list[tuple[str, str, Inputs, str]] = [
    ("an interface outside its subnet", tokens.INTERFACE,
     lambda r: {"subnetId": r.a.id, "privateIps": ["10.0.2.9"]},
     "Address does not fall within the subnet's address range; privateIps.. 10.0.2.9 must be in 10.0.1.0/24"),
    ("an interface with one of AWS's first addresses", tokens.INTERFACE,
     lambda r: {"subnetId": r.a.id, "privateIps": ["10.0.1.3"]}, "Address 10.0.1.3 is in subnet's reserved"),
    ("an interface with AWS's last address", tokens.INTERFACE,
     lambda r: {"subnetId": r.a.id, "privateIps": ["10.0.1.255"]}, "Address 10.0.1.255 is in subnet's reserved"),
    ("an interface with an invalid address", tokens.INTERFACE,
     lambda r: {"subnetId": r.a.id, "privateIps": ["10.0.1"]}, "invalid value for IP address: 10.0.1"),
    ("an interface with another's address", tokens.INTERFACE,
     lambda r: {"subnetId": r.a.id, "privateIps": [r.interface("other").outputs["privateIp"]]},
     "InvalidIPAddress.InUse: Address 10.0.1.4 is in use.; eni-.* needs delete_before_replace"),
    ("an interface with a group of another VPC", tokens.INTERFACE,
     lambda r: {"subnetId": r.a.id, "securityGroups": [r.stranger.id]}, "belong to different networks"),
    ("an interface with six groups", tokens.INTERFACE,
     lambda r: {"subnetId": r.a.id, "securityGroups": [r.group.id] * 6}, "SecurityGroupsPerInterfaceLimitExceeded"),
    ("a subnet in an unknown zone", tokens.SUBNET,
     lambda r: {"vpcId": r.vpc.id, "cidrBlock": "10.0.9.0/24", "availabilityZoneId": "eu-west-1a"},
     "parameter availabilityZoneId is invalid"),
    ("a second internet gateway", tokens.INTERNET_GATEWAY, lambda r: {"vpcId": r.vpc.id},
     "already has an internet gateway attached"),
    ("a route to a missing NAT gateway", tokens.ROUTE_TABLE,
     _routes({"cidrBlock": "0.0.0.0/0", "natGatewayId": "nat-1"}), "InvalidNatGatewayID.NotFound"),
    ("one route twice", tokens.ROUTE_TABLE,
     _routes({"cidrBlock": "0.0.0.0/0", "gatewayId": "igw"}, {"cidrBlock": "0.0.0.0/0", "gatewayId": "igw"}),
     "RouteAlreadyExists: The route identified by 0.0.0.0/0 already exists"),
    ("a route without a target", tokens.ROUTE_TABLE, _routes({"cidrBlock": "0.0.0.0/0"}), "names 0 targets"),
    ("a route with two targets", tokens.ROUTE_TABLE,
     _routes({"cidrBlock": "0.0.0.0/0", "gatewayId": "igw", "transitGatewayId": "tgw-1"}), "names 2 targets"),
    ("a route into the VPC", tokens.ROUTE_TABLE, _routes({"cidrBlock": "10.0.1.0/24", "gatewayId": "igw"}),
     "equal to or more specific than one of this VPC's CIDR"),
    ("a gateway of another VPC", tokens.ROUTE_TABLE,
     lambda r: {"vpcId": r.abroad.id, "routes": [{"cidrBlock": "0.0.0.0/0", "gatewayId": r.internet.id}]},
     "belong to different networks"),
    ("a table for another VPC's subnet", ASSOCIATION,
     lambda r: {"routeTableId": r.table.id, "subnetId": r.away.id}, "belong to different networks"),
    ("a second table for a subnet", ASSOCIATION,
     lambda r: {"routeTableId": r.table.id,
                "subnetId": r.make(ASSOCIATION, "x", routeTableId=r.table.id, subnetId=r.a.id).inputs["subnetId"]},
     "Resource.AlreadyAssociated"),
    ("a NAT gateway without an address", tokens.NAT_GATEWAY, lambda r: {"subnetId": r.a.id},
     "must include the AllocationId parameter"),
    ("a NAT gateway with another's address", tokens.NAT_GATEWAY,
     lambda r: {"subnetId": r.b.id, "allocationId": _nat(r).inputs["allocationId"]},
     "Resource.AlreadyAssociated.*delete_before_replace"),
    ("a NAT gateway in a VPC without internet", tokens.NAT_GATEWAY,
     lambda r: {"subnetId": r.away.id, "allocationId": r.make(tokens.ADDRESS, "x").id},
     "Gateway.NotAttached: Network vpc-0.* has no Internet gateway"),
    ("an endpoint of another region's service", tokens.ENDPOINT,
     lambda r: _endpoint(r, serviceName="com.amazonaws.us-east-1.s3"), "InvalidServiceName"),
    ("a gateway endpoint to a service without one", tokens.ENDPOINT,
     lambda r: {"vpcId": r.vpc.id, "serviceName": "com.amazonaws.eu-west-1.ec2"}, "InvalidServiceName"),
    ("private names in a VPC without DNS", tokens.ENDPOINT,
     lambda r: _endpoint(r, vpcId=r.abroad.id, subnetIds=[], privateDnsEnabled=True),
     "requires both enableDnsSupport and enableDnsHostnames"),
    ("private names twice", tokens.ENDPOINT,
     lambda r: (r.make(tokens.ENDPOINT, "x", **_endpoint(r, privateDnsEnabled=True)),
                _endpoint(r, privateDnsEnabled=True))[1], "already a conflicting DNS domain"),
    ("an endpoint with two subnets in a zone", tokens.ENDPOINT,
     lambda r: _endpoint(r, subnetIds=[r.a.id, r.subnet("a", "10.0.9.0/24", "again").id]), "DuplicateSubnetsInSameZone"),
    ("an endpoint with an invalid policy", tokens.ENDPOINT, lambda r: _endpoint(r, policy="{"), "invalid Json"),
    ("an endpoint with a group of another VPC", tokens.ENDPOINT,
     lambda r: _endpoint(r, securityGroupIds=[r.stranger.id]), "belong to different networks"),
    ("a second S3 endpoint in one table", tokens.ENDPOINT,
     lambda r: {"vpcId": r.vpc.id, "serviceName": "com.amazonaws.eu-west-1.s3",
                "routeTableIds": r.make(tokens.ENDPOINT, "x", vpcId=r.vpc.id, routeTableIds=[r.table.id],
                                        serviceName="com.amazonaws.eu-west-1.s3").inputs["routeTableIds"]},
     "RouteAlreadyExists: route table rtb-0"),
    ("a flow log without a source", FLOW_LOG, lambda r: {"logDestinationType": "s3"}, "must be specified"),
    ("a flow log to an invalid bucket", FLOW_LOG,
     lambda r: {"vpcId": r.vpc.id, "logDestinationType": "s3", "logDestination": "apes-logs"}, "not a valid S3 ARN"),
    ("a flow log twice", FLOW_LOG,
     lambda r: r.make(FLOW_LOG, "x", vpcId=r.vpc.id, logDestinationType="s3",
                      logDestination=r.bucket.outputs["arn"]).inputs, "FlowLogAlreadyExists"),
    ("two rules that differ only in their description", RULE,
     lambda r: (r.make(RULE, "x", **_rule(r, description="one")), _rule(r, description="two"))[1],
     'InvalidPermission.Duplicate: the specified rule "peer: 10.0.0.0/16, TCP, from port: 443, to port: 443, ALLOW"'),
    ("a rule for two peers", RULE, lambda r: _rule(r, referencedSecurityGroupId=r.group.id), "Exactly one of these"),
    ("a rule for a range with host bits", RULE, lambda r: _rule(r, cidrIpv4="10.0.0.1/16"), "write 10.0.0.0/16"),
    ("a rule without ports", RULE, lambda r: _rule(r, toPort=None), "Must specify both from and to ports"),
    ("a rule with ports in reverse order", RULE, lambda r: _rule(r, fromPort=444), "Invalid TCP port range .444,443."),
    ("a rule for a group of another VPC", RULE,
     lambda r: _rule(r, cidrIpv4=None, referencedSecurityGroupId=r.stranger.id), "belong to different networks"),
    ("a second VPN gateway", tokens.VPN_GATEWAY,
     lambda r: r.make(tokens.VPN_GATEWAY, "x", vpcId=r.vpc.id).inputs, "VpnGatewayAttachmentLimitExceeded"),
    ("a router with a link-local address", tokens.CUSTOMER_GATEWAY,
     lambda _: {"bgpAsn": "65010", "ipAddress": "169.254.0.1", "type": "ipsec.1"}, "parameter publicIp is invalid"),
    ("a router with neither address nor certificate", tokens.CUSTOMER_GATEWAY,
     lambda _: {"type": "ipsec.1", "bgpAsn": "65010"}, "MissingParameter"),
    ("a router with a certificate of IAM", tokens.CUSTOMER_GATEWAY,
     lambda _: {"type": "ipsec.1", "bgpAsn": "65010", "certificateArn": "arn:aws:iam::123456789012:server-certificate/a"},
     "give the ARN of a private certificate"),
    ("a router with a certificate of another region", tokens.CUSTOMER_GATEWAY,
     lambda _: {"type": "ipsec.1", "bgpAsn": "65010", "certificateArn": "arn:aws:acm:us-east-1:123456789012:certificate/a"},
     "a certificate belongs to one region"),
    ("a router with a name instead of an address", tokens.CUSTOMER_GATEWAY,
     lambda _: {"bgpAsn": "65010", "ipAddress": "edge-1", "type": "ipsec.1"}, "give an IPv4 address"),
    ("a router with a reserved ASN", tokens.CUSTOMER_GATEWAY,
     lambda _: {"bgpAsn": "7224", "ipAddress": "192.0.2.1", "type": "ipsec.1"}, "parameter bgpAsn is invalid"),
    ("a tunnel with a range that is not a /30", CONNECTION,
     lambda r: _vpn(r, tunnel1InsideCidr="169.254.100.0/29"), "a /30 of 169.254.0.0/16"),
    ("a tunnel with a range that AWS reserves", CONNECTION,
     lambda r: _vpn(r, tunnel1InsideCidr="169.254.5.0/30"), "Invalid value '169.254.5.0/30' for TunnelInsideCidr"),
    ("a tunnel with a range that is not link-local", CONNECTION,
     lambda r: _vpn(r, tunnel2InsideCidr="10.0.0.0/30"), "Invalid value '10.0.0.0/30'"),
    ("two tunnels with one range", CONNECTION,
     lambda r: _vpn(r, tunnel1InsideCidr="169.254.100.0/30", tunnel2InsideCidr="169.254.100.0/30"),
     "is already in use by the other tunnel"),
    ("a range of another connection of the gateway", CONNECTION,
     lambda r: r.make(CONNECTION, "x", **_vpn(r, tunnel1InsideCidr="169.254.100.0/30")).inputs,
     "169.254.100.0/30 is already in use by vpn-0"),
    ("a key that starts with 0", CONNECTION, lambda r: _vpn(r, tunnel1PresharedKey="0123456789"), "8 to 64 of a-z"),
    ("a connection to two gateways", CONNECTION, lambda r: _vpn(r, transitGatewayId="tgw-1"), "conflicts with"),
    ("routes of another VPC's gateway", PROPAGATION,
     lambda r: {"routeTableId": r.table.id,
                "vpnGatewayId": r.make(tokens.VPN_GATEWAY, "x", vpcId=r.abroad.id).id}, "is not attached to the VPC"),
]  # fmt: skip


@pytest.mark.parametrize(("token", "inputs", "words"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_invalid_network_resources_are_refused(region: Region, token: str, inputs: Inputs, words: str) -> None:
    region.refuses(
        words, token, "refused", **{name: value for name, value in inputs(region).items() if value is not None}
    )


def test_a_group_has_at_most_sixty_rules_per_direction(region: Region) -> None:
    for port in range(60):
        region.make(RULE, f"rule-{port}", **_rule(region, fromPort=port, toPort=port))
    region.refuses("RulesPerSecurityGroupLimitExceeded.*has 60", RULE, "one-more", **_rule(region))


def test_an_account_with_a_raised_quota_has_more_rules(region: Region) -> None:
    rules = [{"protocol": "tcp", "fromPort": 443, "toPort": 443, "cidrBlocks": [f"10.{i}.0.0/16" for i in range(99)]}]
    group = {"name": "it", "vpcId": region.vpc.id, "ingress": rules}
    region.refuses("maximum number of rules", tokens.SECURITY_GROUP, **group)
    region.aws.world.quotas[SECURITY_GROUP_RULES] = 99
    region.make(tokens.SECURITY_GROUP, **group)


def test_a_rule_keeps_its_id_when_its_description_changes(region: Region) -> None:
    rule = region.make(RULE, **_rule(region))
    assert region.aws.update(rule, description="new").id == rule.id


def test_network_resources_in_use_cannot_be_deleted(region: Region) -> None:
    nat = _nat(region)
    with pytest.raises(RefusalError, match="has some mapped public address.*delete first: .*nat-0"):
        region.aws.delete(region.internet)
    (address,) = region.aws.world.of_type(tokens.ADDRESS)
    with pytest.raises(RefusalError, match="InvalidIPAddress.InUse.*nat-0"):
        region.aws.delete(address)
    interface = region.interface()
    region.instance(subnetId=None, primaryNetworkInterface={"networkInterfaceId": interface.id})
    with pytest.raises(RefusalError, match="InvalidNetworkInterface.InUse: Interface: .eni-0"):
        region.aws.delete(interface)
    for record in (nat, address, region.internet):
        region.aws.delete(record)


@pytest.mark.parametrize(
    ("token", "old", "new", "paths"),
    [
        (tokens.INTERFACE, {"privateIps": ["10.0.1.4"]}, {"privateIps": ["10.0.1.5"]}, ["privateIps[0]"]),
        (tokens.INTERFACE, {"privateIps": ["10.0.1.4"]}, {"privateIps": ["10.0.1.4", "10.0.1.5"]}, []),
        (tokens.INTERFACE, {"subnetId": "a"}, {"subnetId": "b"}, ["subnetId"]),
        (tokens.INTERFACE, {"securityGroups": ["a"]}, {"securityGroups": ["b"]}, []),
        (tokens.ADDRESS, {"networkBorderGroup": "a"}, {"networkBorderGroup": "b"}, ["networkBorderGroup"]),
        (tokens.NAT_GATEWAY, {"allocationId": "a"}, {"allocationId": "b"}, ["allocationId"]),
        (tokens.NAT_GATEWAY, {"subnetId": "a"}, {"subnetId": "b"}, ["subnetId"]),
        (tokens.ENDPOINT, {"serviceName": "a"}, {"serviceName": "b"}, ["serviceName"]),
        (tokens.ENDPOINT, {"policy": "a", "subnetIds": ["a"]}, {"policy": "b", "subnetIds": ["b"]}, []),
        (FLOW_LOG, {"trafficType": "ALL"}, {"trafficType": "REJECT"}, ["trafficType"]),
        (FLOW_LOG, {"logDestination": "a"}, {"logDestination": "b"}, ["logDestination"]),
        (RULE, {"fromPort": 1, "toPort": 1}, {"fromPort": 2, "toPort": 2}, []),
        (RULE, {"securityGroupId": "a"}, {"securityGroupId": "b"}, ["securityGroupId"]),
        (RULE, {"cidrIpv4": "10.0.0.0/8"}, {"cidrIpv4": "10.0.0.0/9"}, []),
        (RULE, {"cidrIpv4": "10.0.0.0/8"}, {"referencedSecurityGroupId": "sg-1"}, ["cidrIpv4"]),
        (ASSOCIATION, {"routeTableId": "a"}, {"routeTableId": "b"}, []),
        (ASSOCIATION, {"subnetId": "a"}, {"subnetId": "b"}, ["subnetId"]),
        (tokens.VPN_GATEWAY, {"amazonSideAsn": "1"}, {"amazonSideAsn": "2"}, ["amazonSideAsn"]),
        (tokens.CUSTOMER_GATEWAY, {"ipAddress": "192.0.2.1"}, {"ipAddress": "192.0.2.2"}, ["ipAddress"]),
        (CONNECTION, {"tunnel1InsideCidr": "a"}, {"tunnel1InsideCidr": "b"}, ["tunnel1InsideCidr"]),
        (CONNECTION, {"tunnel1PresharedKey": "a"}, {"tunnel1PresharedKey": "b"}, []),
        (CONNECTION, {"customerGatewayId": "a"}, {"customerGatewayId": "b"}, []),
        (CONNECTION, {"staticRoutesOnly": True}, {"staticRoutesOnly": False}, ["staticRoutesOnly"]),
        (PROPAGATION, {"routeTableId": "a"}, {"routeTableId": "b"}, ["routeTableId"]),
        (DEFAULT_GROUP, {"vpcId": "a"}, {"vpcId": "b"}, ["vpcId"]),
    ],
)
def test_which_changes_replace_network_resources(api: Any, token: str, old: Any, new: Any, paths: list[str]) -> None:
    assert api("aws").replaces(token, old, new) == paths


def test_an_endpoint_accepts_a_policy(region: Region) -> None:
    allowed = policy({"Effect": "Allow", "Principal": "*", "Action": "*", "Resource": "*"})
    assert region.make(tokens.ENDPOINT, **_endpoint(region, policy=allowed)).outputs["policy"] == allowed
