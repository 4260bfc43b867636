"""AWS resources that combine several: rules in groups, NAT for a whole region, main route tables; and file systems."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.simcloud.aws import tokens
from sandbox.simcloud.rules import RefusalError
from tests.simcloud.aws_support import Region

TABLE = "aws:ec2/defaultRouteTable:DefaultRouteTable"
TARGET = "aws:efs/mountTarget:MountTarget"
WEB = {"protocol": "tcp", "fromPort": 443, "toPort": 443}


@pytest.fixture
def region(api: Any) -> Region:
    return Region(api("aws"))


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ([{**WEB, "cidrBlocks": ["10.0.0.0/24"]}] * 2, "The same permission must not appear multiple times"),
        (
            [{**WEB, "self": True, "description": "One."}, {**WEB, "self": True, "description": "Two."}],
            "The same permission must not appear multiple times",
        ),
        ([{**WEB, "cidrBlocks": [f"10.0.{i}.0/24" for i in range(61)]}], "maximum number of rules"),
        ([WEB], "a rule names nobody"),
        ([{"protocol": "-1", "fromPort": 1, "toPort": 1, "self": True}], "must both be 0"),
        ([{"protocol": "tcp", "fromPort": 9, "toPort": 1, "self": True}], r"Invalid TCP port range \(9,1\)"),
    ],
)
@pytest.mark.parametrize("side", ["ingress", "egress"])
def test_a_group_is_refused_for_invalid_inline_rules(region, side, rules, words):
    region.refuses(words, tokens.SECURITY_GROUP, name="it", vpcId=region.vpc.id, **{side: rules})


def test_a_group_refers_only_to_groups_of_its_vpc_and_keeps_them_from_deletion(region):
    rules = {"ingress": [{**WEB, "securityGroups": [region.stranger.id]}]}
    region.refuses("belong to different networks", tokens.SECURITY_GROUP, name="it", vpcId=region.vpc.id, **rules)
    rules = {"ingress": [{**WEB, "securityGroups": [region.group.id]}]}
    group = region.make(tokens.SECURITY_GROUP, name="it", vpcId=region.vpc.id, **rules)
    with pytest.raises(RefusalError, match="has a dependent object"):
        region.aws.delete(region.group)
    region.aws.delete(group)
    region.aws.delete(region.group)


@pytest.mark.parametrize("more", [{"subnetId": "a"}, {"allocationId": "eipalloc-1"}, {"privateIp": "10.0.1.9"}])
def test_a_regional_nat_gateway_belongs_to_the_vpc_and_accepts_no_subnet_or_address(region, more):
    more = {name: region.a.id if name == "subnetId" else value for name, value in more.items()}
    if "allocationId" in more:
        more = {"allocationId": region.make(tokens.ADDRESS, domain="vpc").id}
    regional = {"availabilityMode": "regional", "vpcId": region.vpc.id}
    region.refuses("availability_mode regional", tokens.NAT_GATEWAY, **regional, **more)
    region.refuses("vpc_id is missing", tokens.NAT_GATEWAY, availabilityMode="regional")
    region.refuses("no Internet gateway", tokens.NAT_GATEWAY, availabilityMode="regional", vpcId=region.abroad.id)
    gateway = region.make(tokens.NAT_GATEWAY, **regional)
    with pytest.raises(RefusalError, match="mapped public address"):
        region.aws.delete(region.internet)
    region.aws.delete(gateway)
    region.aws.delete(region.internet)


def test_the_main_route_table_is_adopted_and_has_rules_like_others(region):
    main = region.vpc.outputs["defaultRouteTableId"]
    nat = region.make(tokens.NAT_GATEWAY, availabilityMode="regional", vpcId=region.vpc.id)
    routes = [{"cidrBlock": "0.0.0.0/0", "natGatewayId": nat.id}]
    table = region.make(TABLE, defaultRouteTableId=main, routes=routes)
    assert (table.id, table.outputs["vpcId"]) == (main, region.vpc.id)
    away = region.make(tokens.VPN_GATEWAY, vpcId=region.abroad.id)
    region.refuses("different networks", TABLE, defaultRouteTableId=main, propagatingVgws=[away.id])
    inside = [{"cidrBlock": "10.0.3.0/24", "natGatewayId": nat.id}]
    region.refuses("more specific", TABLE, defaultRouteTableId=main, routes=inside)
    region.aws.delete(table)


def test_an_address_belongs_to_one_internet_facing_load_balancer(region):
    address = region.make(tokens.ADDRESS, domain="vpc")
    mapped = {"subnetMappings": [{"subnetId": region.a.id, "allocationId": address.id}], "loadBalancerType": "network"}
    region.refuses("internet-facing load balancers only", tokens.BALANCER, name="in", internal=True, **mapped)
    region.make(tokens.BALANCER, "one", name="one", **mapped)
    region.refuses("not available for use", tokens.BALANCER, "two", name="two", **mapped)
    abroad = {"subnetMappings": [{"subnetId": region.away.id}], "loadBalancerType": "network"}
    region.refuses("has no internet gateway", tokens.BALANCER, "three", name="three", **abroad)


def test_a_file_system_has_one_mount_target_per_zone_and_is_deleted_after_them(region):
    region.refuses("encrypted must be set", tokens.FILE_SYSTEM, creationToken="it", kmsKeyId=region.key.outputs["arn"])
    system = region.make(tokens.FILE_SYSTEM, creationToken="it", encrypted=True)
    region.refuses("already exists with creation token it", tokens.FILE_SYSTEM, "other", creationToken="it")
    target = region.make(TARGET, "a", fileSystemId=system.id, subnetId=region.a.id)
    again = region.subnet("a", "10.0.9.0/24", "again")
    region.refuses("already exists in this AZ", TARGET, "again", fileSystemId=system.id, subnetId=again.id)
    groups = [region.stranger.id]
    region.refuses(
        "different networks", TARGET, "b", fileSystemId=system.id, subnetId=region.b.id, securityGroups=groups
    )
    with pytest.raises(RefusalError, match="FileSystemInUse"):
        region.aws.delete(system)
    region.aws.delete(target)
    region.aws.delete(system)
