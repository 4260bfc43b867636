"""AWS without an engine: what it makes of a request and what it refuses."""

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


def test_ids_and_arns_of_a_vpc_and_its_defaults_are_well_formed_and_deterministic(api: Any) -> None:
    vpc, again = _vpc(api("aws")), _vpc(api("aws"))
    assert vpc == again
    assert vpc.outputs["arn"] == f"arn:aws:ec2:eu-west-1:123456789012:vpc/{vpc.id}"
    assert len(vpc.id) == len("vpc-0123456789abcdef0")
    assert vpc.outputs["defaultSecurityGroupId"].startswith("sg-0")


def test_the_default_security_group_of_a_vpc_can_be_referenced(api: Any) -> None:
    aws = api("aws")
    vpc = _vpc(aws)
    default = vpc.outputs["defaultSecurityGroupId"]
    instance = aws.create(
        INSTANCE, ami="ami-1", subnetId=_subnet(aws, vpc).id, vpcSecurityGroupIds=[default], instanceType="m7i.large"
    )
    assert instance.outputs["privateIp"] == "10.0.1.4"
    with pytest.raises(RefusalError, match="DependencyViolation"):
        aws.delete(vpc)


def test_every_resource_has_the_providers_tags(api: Any) -> None:
    aws = api("aws", defaultTags='{"tags": {"cluster": "horus", "team": "apes"}}')
    vpc = aws.create(VPC, cidrBlock="10.0.0.0/16", tags={"team": "gibbons"})
    assert vpc.outputs["tagsAll"] == {"cluster": "horus", "team": "gibbons"}


def test_no_region_is_refused(api: Any) -> None:
    with pytest.raises(RefusalError, match="pulumi config set aws:region"):
        api("aws", region="")


@pytest.mark.parametrize("range_", ["10.0.0.0/15", "10.0.0.0/29", "10.0.0.1/16"])
def test_a_vpc_with_a_range_that_aws_does_not_accept_is_refused(api: Any, range_: str) -> None:
    with pytest.raises(RefusalError, match="InvalidVpc.Range: The CIDR '10.0.0.*between /16 and /28"):
        api("aws").create(VPC, cidrBlock=range_)


def test_a_subnet_is_inside_its_vpc_and_overlaps_no_other(api: Any) -> None:
    aws = api("aws")
    vpc, other = _vpc(aws), _vpc(aws, "other")
    first = _subnet(aws, vpc)
    with pytest.raises(RefusalError, match="InvalidSubnet.Range: The CIDR '10.1.0.0/24'.*must be in 10.0.0.0/16"):
        _subnet(aws, vpc, "10.1.0.0/24", "second")
    with pytest.raises(RefusalError, match=f"InvalidSubnet.Conflict.*'10.0.0.0/23' conflicts.*{first.id}"):
        _subnet(aws, vpc, "10.0.0.0/23", "second")
    _subnet(aws, vpc, "10.0.2.0/24", "second")
    _subnet(aws, other, "10.0.1.0/24", "third")


def test_references_to_missing_resources_and_to_other_regions_are_refused(api: Any) -> None:
    aws = api("aws")
    with pytest.raises(RefusalError, match="InvalidVpcID.NotFound: The vpc ID 'vpc-1' does not exist; vpcId must name"):
        aws.create(SUBNET, vpcId="vpc-1", cidrBlock="10.0.1.0/24")
    away = api("aws", aws.world, region="us-east-2")
    with pytest.raises(RefusalError, match="does not exist; it is in eu-west-1.*only name something in us-east-2"):
        _subnet(away, _vpc(aws))


def test_two_security_groups_of_a_vpc_cannot_have_the_same_name(api: Any) -> None:
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
        (GROUP, "sg-hosts", "must not start with sg-"),
        (BALANCER, "a" * 33, "33 characters.*at most 32"),
        (BALANCER, "internal-api", "not start with internal-"),
        (TEMPLATE, "ab", "3 to 128"),
        (SCALING, "a:b", "must not contain a colon"),
    ],
)
def test_an_invalid_name_is_refused_before_anything_is_created(api: Any, token: str, name: str, words: str) -> None:
    with pytest.raises(RefusalError, match=words) as error:
        api("aws").checked(token, "it", {"name": name})
    assert error.value.property == "name"


def test_a_generated_name_that_is_too_long_is_refused_too(api: Any) -> None:
    with pytest.raises(RefusalError, match="invalid value for name"):
        api("aws").checked(BALANCER, "urn:pulumi:sim::apes::t::" + "a" * 30, {})


def test_a_resource_in_use_cannot_be_deleted(api: Any) -> None:
    aws = api("aws")
    vpc = _vpc(aws)
    subnet = _subnet(aws, vpc)
    with pytest.raises(RefusalError, match=f"DependencyViolation: The vpc '{vpc.id}' has dep.*first: .*{subnet.id}"):
        aws.delete(vpc)
    aws.delete(subnet)
    aws.delete(vpc)
    aws.delete(vpc)
    assert len(aws.world) == 0


def test_deletion_protection_must_be_removed_first(api: Any) -> None:
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


def test_the_machine_type_of_a_group_must_be_offered_in_the_zones_of_its_subnets(api: Any) -> None:
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
def test_which_changes_replace(api: Any, token: str, old: Any, new: Any, paths: list[str]) -> None:
    assert api("aws").replaces(token, old, new) == paths


def test_a_full_subnet_accepts_no_more_instances(api: Any) -> None:
    aws = api("aws")
    subnet = _subnet(aws, _vpc(aws), "10.0.0.0/28")
    instances = [aws.create(INSTANCE, f"i-{i}", ami="ami-1", subnetId=subnet.id) for i in range(11)]
    assert [instances[0].outputs["privateIp"], instances[-1].outputs["privateIp"]] == ["10.0.0.4", "10.0.0.14"]
    with pytest.raises(RefusalError, match="full"):
        aws.create(INSTANCE, "one-more", ami="ami-1", subnetId=subnet.id)
