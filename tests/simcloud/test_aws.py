"""What AWS makes of a request and what it refuses, asked without an engine."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.simcloud.rules import Offers, RefusalError

VPC = "aws:ec2/vpc:Vpc"
SUBNET = "aws:ec2/subnet:Subnet"
GROUP = "aws:ec2/securityGroup:SecurityGroup"
INSTANCE = "aws:ec2/instance:Instance"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
SCALING = "aws:autoscaling/group:Group"
BALANCER = "aws:lb/loadBalancer:LoadBalancer"


def _vpc(aws: Any, called: str = "vpc") -> Any:
    return aws.create(VPC, called, cidrBlock="10.0.0.0/16")


def _subnet(aws: Any, vpc: Any, range_: str = "10.0.1.0/24", called: str = "subnet") -> Any:
    return aws.create(SUBNET, called, vpcId=vpc.id, cidrBlock=range_)


def test_ids_arns_and_what_comes_with_a_vpc_have_their_shape_and_are_the_same_in_every_run(api: Any) -> None:
    vpc, again = _vpc(api("aws")), _vpc(api("aws"))
    assert vpc == again
    assert vpc.outputs["arn"] == f"arn:aws:ec2:eu-west-1:123456789012:vpc/{vpc.id}"
    assert len(vpc.id) == len("vpc-0123456789abcdef0")
    assert vpc.outputs["defaultSecurityGroupId"].startswith("sg-0")


def test_the_security_group_that_comes_with_a_vpc_can_be_named(api: Any) -> None:
    aws = api("aws")
    vpc = _vpc(aws)
    default = vpc.outputs["defaultSecurityGroupId"]
    instance = aws.create(
        INSTANCE, ami="ami-1", subnetId=_subnet(aws, vpc).id, vpcSecurityGroupIds=[default], instanceType="m7i.large"
    )
    assert instance.outputs["privateIp"] == "10.0.1.4"
    with pytest.raises(RefusalError, match="DependencyViolation"):
        aws.delete(vpc)


def test_tags_of_the_provider_are_on_everything(api: Any) -> None:
    aws = api("aws", defaultTags='{"tags": {"cluster": "horus", "team": "apes"}}')
    vpc = aws.create(VPC, cidrBlock="10.0.0.0/16", tags={"team": "gibbons"})
    assert vpc.outputs["tagsAll"] == {"cluster": "horus", "team": "gibbons"}


def test_no_region_is_refused(api: Any) -> None:
    with pytest.raises(RefusalError, match="pulumi config set aws:region"):
        api("aws", region="")


@pytest.mark.parametrize("range_", ["10.0.0.0/15", "10.0.0.0/29", "10.0.0.1/16"])
def test_a_vpc_with_a_range_that_aws_does_not_take_is_refused(api: Any, range_: str) -> None:
    with pytest.raises(RefusalError, match="InvalidVpc.Range: The CIDR '10.0.0.*between /16 and /28"):
        api("aws").create(VPC, cidrBlock=range_)


def test_a_subnet_lies_in_its_vpc_and_beside_the_others(api: Any) -> None:
    aws = api("aws")
    vpc, other = _vpc(aws), _vpc(aws, "other")
    first = _subnet(aws, vpc)
    with pytest.raises(RefusalError, match="InvalidSubnet.Range: The CIDR '10.1.0.0/24'.*must lie in 10.0.0.0/16"):
        _subnet(aws, vpc, "10.1.0.0/24", "second")
    with pytest.raises(RefusalError, match=f"InvalidSubnet.Conflict.*'10.0.0.0/23' conflicts.*{first.id}"):
        _subnet(aws, vpc, "10.0.0.0/23", "second")
    _subnet(aws, vpc, "10.0.2.0/24", "second")
    _subnet(aws, other, "10.0.1.0/24", "third")


def test_a_reference_to_nothing_and_to_another_region_are_refused(api: Any) -> None:
    aws = api("aws")
    with pytest.raises(RefusalError, match="InvalidVpcID.NotFound: The vpc ID 'vpc-1' does not exist; vpcId must name"):
        aws.create(SUBNET, vpcId="vpc-1", cidrBlock="10.0.1.0/24")
    away = api("aws", aws.world, region="us-east-2")
    with pytest.raises(RefusalError, match="does not exist; it is in eu-west-1.*only name something in us-east-2"):
        _subnet(away, _vpc(aws))


def test_two_security_groups_of_a_vpc_cannot_have_one_name(api: Any) -> None:
    aws = api("aws")
    vpc, other = _vpc(aws), _vpc(aws, "other")
    group = aws.create(GROUP, name="hosts", vpcId=vpc.id)
    aws.create(GROUP, name="hosts", vpcId=other.id)
    with pytest.raises(RefusalError, match=f"'hosts' already exists for VPC '{vpc.id}'"):
        aws.create(GROUP, "second", name="hosts", vpcId=vpc.id)
    aws.update(group, description="of hosts")


@pytest.mark.parametrize(
    ("token", "name", "words"),
    [
        (GROUP, "sg-hosts", "may not begin with sg-"),
        (BALANCER, "a" * 33, "33 characters.*at most 32"),
        (BALANCER, "internal-api", "not begin with internal-"),
        (TEMPLATE, "ab", "3 to 128"),
        (SCALING, "a:b", "may not have a colon"),
    ],
)
def test_a_name_that_aws_does_not_take_is_refused_before_anything_is_made(
    api: Any, token: str, name: str, words: str
) -> None:
    with pytest.raises(RefusalError, match=words) as error:
        api("aws").checked(token, "it", {"name": name})
    assert error.value.property == "name"


def test_a_generated_name_may_be_too_long_as_well(api: Any) -> None:
    with pytest.raises(RefusalError, match="invalid value for name"):
        api("aws").checked(BALANCER, "urn:pulumi:sim::apes::t::" + "a" * 30, {})


def test_what_is_used_is_not_deleted_before_what_uses_it(api: Any) -> None:
    aws = api("aws")
    vpc = _vpc(aws)
    subnet = _subnet(aws, vpc)
    with pytest.raises(RefusalError, match=f"DependencyViolation: The vpc '{vpc.id}' has dep.*first: .*{subnet.id}"):
        aws.delete(vpc)
    aws.delete(subnet)
    aws.delete(vpc)
    aws.delete(vpc)
    assert len(aws.world) == 0


def test_deletion_protection_is_taken_off_first(api: Any) -> None:
    aws = api("aws")
    subnet = _subnet(aws, _vpc(aws))
    kept = aws.create(
        BALANCER,
        subnets=[subnet.id],
        name="api",
        loadBalancerType="network",
        internal=True,
        enableDeletionProtection=True,
    )
    with pytest.raises(RefusalError, match="deletion protection is enabled; set enableDeletionProtection to false"):
        aws.delete(kept)
    aws.delete(aws.update(kept, enableDeletionProtection=False))


def test_a_group_s_machine_must_be_offered_in_the_zones_of_its_subnets(api: Any) -> None:
    def refuse(place: Any) -> str | None:
        only = f"m7i.large is offered in {place.region}a only"
        return only if place.machine and place.zone == "eu-west-1b" else None

    aws = api("aws", offers=Offers(refuse=refuse))
    vpc = _vpc(aws)
    template = aws.create(TEMPLATE, name="hosts", imageId="ami-1", instanceType="m7i.large")
    near = aws.create(SUBNET, vpcId=vpc.id, cidrBlock="10.0.1.0/24", availabilityZone="eu-west-1a")
    sizes = {"minSize": 1, "maxSize": 3}
    group = aws.create(SCALING, name="near", launchTemplate={"id": template.id}, vpcZoneIdentifiers=[near.id], **sizes)
    assert group.outputs["availabilityZones"] == ["eu-west-1a"]
    with pytest.raises(RefusalError, match="Value .eu-west-1z. for parameter.*zones of eu-west-1 are eu-west-1a"):
        aws.create(SUBNET, "z", vpcId=vpc.id, cidrBlock="10.0.2.0/24", availabilityZone="eu-west-1z")
    far = aws.create(SUBNET, "b", vpcId=vpc.id, cidrBlock="10.0.2.0/24", availabilityZone="eu-west-1b")
    with pytest.raises(RefusalError, match=r"eu-west-1 eu-west-1b: \[m7i.large\]; .*offered in eu-west-1a only"):
        aws.create(SCALING, name="far", launchTemplate={"id": template.id}, vpcZoneIdentifiers=[far.id], **sizes)


@pytest.mark.parametrize(
    ("token", "old", "new", "paths"),
    [
        (VPC, {"cidrBlock": "10.0.0.0/16"}, {"cidrBlock": "10.1.0.0/16"}, ["cidrBlock"]),
        (VPC, {"tags": {"a": "1"}}, {"tags": {"a": "2"}}, []),
        (VPC, {"region": "eu-west-1"}, {"region": "eu-west-2"}, ["region"]),
        (VPC, {"instanceTenancy": "default"}, {"instanceTenancy": "dedicated"}, ["instanceTenancy"]),
        (VPC, {"instanceTenancy": "dedicated"}, {"instanceTenancy": "default"}, []),
        (INSTANCE, {"instanceType": "m7i.large"}, {"instanceType": "m7i.xlarge"}, []),
        (INSTANCE, {"rootBlockDevice": {"encrypted": False}}, {"rootBlockDevice": {"encrypted": True}},
         ["rootBlockDevice.encrypted"]),
        (INSTANCE, {"rootBlockDevice": {"volumeSize": 8}}, {"rootBlockDevice": {"volumeSize": 9}}, []),
        (BALANCER, {"subnets": ["a", "b"]}, {"subnets": ["a", "b", "c"]}, []),
        (BALANCER, {"subnets": ["a", "b"]}, {"subnets": ["a"]}, ["subnets[1]"]),
    ],
)  # fmt: skip
def test_what_replaces(api: Any, token: str, old: Any, new: Any, paths: list[str]) -> None:
    assert api("aws").replaces(token, old, new) == paths


def test_a_subnet_that_is_full_takes_no_more_instances(api: Any) -> None:
    aws = api("aws")
    subnet = _subnet(aws, _vpc(aws), "10.0.0.0/28")
    made = [aws.create(INSTANCE, f"i-{i}", ami="ami-1", subnetId=subnet.id) for i in range(11)]
    assert [made[0].outputs["privateIp"], made[-1].outputs["privateIp"]] == ["10.0.0.4", "10.0.0.14"]
    with pytest.raises(RefusalError, match="full"):
        aws.create(INSTANCE, "one-more", ami="ami-1", subnetId=subnet.id)
