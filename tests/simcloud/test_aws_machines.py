"""AWS instances, templates, groups, disks and load balancers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sandbox.simcloud.aws import tokens
from sandbox.simcloud.rules import Offers, RefusalError
from tests.simcloud.aws_support import ATTACHMENT, SCALING_TAG, Region, encoded

Inputs = Callable[[Region], dict[str, Any]]


@pytest.fixture
def region(api: Any) -> Region:
    return Region(api("aws"))


def _instance(**inputs: Any) -> Inputs:
    return lambda region: {"ami": "ami-1", "instanceType": "m7i.large", "subnetId": region.a.id, **inputs}


def _on(interface: str, **inputs: Any) -> dict[str, Any]:
    return {"ami": "ami-1", "primaryNetworkInterface": {"networkInterfaceId": interface}, **inputs}


def _template(**inputs: Any) -> Inputs:
    return lambda _: {"name": "refused", "imageId": "ami-1", "instanceType": "m7i.large", **inputs}


def _group(region: Region, template: dict[str, Any] | None = None, **inputs: Any) -> dict[str, Any]:
    record = region.template("of-group", **(template or {}))
    given = {"name": "group", "minSize": 1, "maxSize": 3, "launchTemplate": {"id": record.id}}
    return {**given, "vpcZoneIdentifiers": [region.a.id, region.b.id], **inputs}


def _disk(**inputs: Any) -> Inputs:
    return lambda _: {"availabilityZone": "eu-west-1a", "size": 100, **inputs}


def _attached(region: Region, called: str = "attached") -> dict[str, Any]:
    volume, host = region.volume(f"{called}-disk"), region.instance(f"{called}-host")
    inputs = {"volumeId": volume.id, "instanceId": host.id, "deviceName": "/dev/sdf"}
    region.make(ATTACHMENT, called, **inputs)
    return inputs


def _balancer(region: Region, **inputs: Any) -> dict[str, Any]:
    given = {"name": "refused", "loadBalancerType": "network", "internal": True, "subnets": [region.a.id, region.b.id]}
    return {name: value for name, value in {**given, **inputs}.items() if value is not None}


def _mapped(region: Region, address: str, **inputs: Any) -> dict[str, Any]:
    mapping = {"subnetId": region.a.id, "privateIpv4Address": address}
    return _balancer(region, subnets=None, subnetMappings=[mapping], **inputs)


def _listener(region: Region, balancer: Any, targets: Any, **inputs: Any) -> dict[str, Any]:
    action = {"type": "forward", "targetGroupArn": targets.id}
    return {
        "loadBalancerArn": balancer.id,
        "port": 443,
        "protocol": "TCP",
        "defaultActions": [action],
        **inputs,
    }


def test_an_instance_is_in_the_zone_of_its_interface(region: Region) -> None:
    interface = region.make(tokens.INTERFACE, "eni", subnetId=region.b.id, privateIps=["10.0.2.20"])
    host = region.make(tokens.INSTANCE, "host", **_on(interface.id))
    assert host.outputs["privateIp"] == "10.0.2.20"
    assert host.outputs["availabilityZone"] == "eu-west-1b"
    assert host.outputs["primaryNetworkInterfaceId"] == interface.id
    disk = region.volume(availabilityZone="eu-west-1b")
    region.make(ATTACHMENT, volumeId=disk.id, instanceId=host.id, deviceName="/dev/sdf")


def test_a_disk_is_encrypted_by_a_key_of_the_region_and_has_an_arn(region: Region) -> None:
    volume = region.volume(type="gp3", encrypted=True, kmsKeyId=region.key.outputs["arn"])
    assert volume.outputs["arn"] == f"arn:aws:ec2:eu-west-1:123456789012:volume/{volume.id}"
    assert (volume.outputs["iops"], volume.outputs["throughput"]) == (3000, 125)


@pytest.mark.parametrize(
    "inputs",
    [
        {"type": "io2", "iops": 100000, "size": 100},
        {"type": "io1", "iops": 5000, "size": 100},
        {"type": "gp3", "iops": 3000, "size": 1},
        {"type": "gp3", "iops": 16000, "throughput": 1000, "size": 100},
        {"type": "gp2", "size": 16384},
    ],
)
def test_a_disk_within_the_limits_is_created(region: Region, inputs: dict[str, Any]) -> None:
    assert region.volume(**inputs).outputs["size"] == inputs["size"]


def test_a_balancer_has_the_name_and_zone_that_records_need(region: Region) -> None:
    balancer = region.balancer(subnets=None, subnetMappings=[
        {"subnetId": region.a.id, "privateIpv4Address": "10.0.1.10"},
        {"subnetId": region.b.id, "privateIpv4Address": "10.0.2.10"},
    ])  # fmt: skip
    assert balancer.outputs["dnsName"].startswith("api-")
    assert balancer.outputs["dnsName"].endswith(".elb.eu-west-1.amazonaws.com")
    assert balancer.outputs["zoneId"].startswith("Z")
    assert balancer.outputs["vpcId"] == region.vpc.id
    region.aws.update(balancer, enableCrossZoneLoadBalancing=True)
    region.refuses("Address 10.0.1.10 is in use", tokens.INTERFACE, subnetId=region.a.id, privateIps=["10.0.1.10"])


def test_a_group_creates_instances_from_its_template_in_the_zones_of_its_subnets(region: Region) -> None:
    targets = region.targets()
    group = region.make(tokens.SCALING_GROUP, **_group(region, targetGroupArns=[targets.id]))
    assert group.outputs["availabilityZones"] == ["eu-west-1a", "eu-west-1b"]
    assert group.outputs["arn"].endswith(":autoScalingGroupName/group")
    tag = region.make(SCALING_TAG, autoscalingGroupName="group", tag={"key": "a", "value": "b"})
    assert tag.id == "group,a"


REFUSED: list[tuple[str, str, Inputs, str]] = [
    ("an instance with a malformed image ID", tokens.INSTANCE, _instance(ami="flatcar"), "InvalidAMIID.Malformed"),
    ("an instance with 16 KiB of user data and a byte", tokens.INSTANCE, _instance(userData="x" * 16385),
     "User data is limited to 16384 bytes; it has 16385 before base64"),
    ("an instance with encoded user data that is too long", tokens.INSTANCE,
     _instance(userDataBase64=encoded("x" * 16385)), "User data is limited to 16384 bytes"),
    ("an instance with an invalid disk", tokens.INSTANCE,
     _instance(ebsBlockDevices=[{"volumeType": "io2", "volumeSize": 4}]), "iops must be specified for io2"),
    ("an instance with an interface and a subnet", tokens.INSTANCE,
     lambda r: _on(r.interface().id, subnetId=r.a.id), "and an instance-level subnet ID may not be specified"),
    ("an instance with an interface and groups", tokens.INSTANCE,
     lambda r: _on(r.interface().id, vpcSecurityGroupIds=[r.group.id]), "and security groups may not be specified"),
    ("an instance with another's interface", tokens.INSTANCE,
     lambda r: (r.make(tokens.INSTANCE, "x", **_on(r.interface().id)),
                _on(r.aws.world.of_type(tokens.INTERFACE)[0].id))[1],
     "InvalidNetworkInterface.InUse: Interface: .eni-0.*delete_before_replace"),
    ("an instance with a group of another VPC", tokens.INSTANCE,
     lambda r: {**_instance()(r), "vpcSecurityGroupIds": [r.stranger.id]}, "belong to different networks"),
    ("an instance with a missing identity", tokens.INSTANCE, _instance(iamInstanceProfile="nobody"),
     "Invalid IAM Instance Profile name"),
    ("an instance with another's address", tokens.INSTANCE,
     lambda r: _instance(privateIp=r.instance("x").outputs["privateIp"])(r), "Address 10.0.1.4 is in use"),
    ("an instance in a missing placement group", tokens.INSTANCE, _instance(placementGroup="close"),
     "InvalidPlacementGroup.Unknown"),
    ("a template with 16 KiB of user data and a byte", tokens.TEMPLATE, _template(userData=encoded("x" * 16385)),
     "User data is limited to 16384 bytes"),
    ("a template with plain user data", tokens.TEMPLATE, _template(userData="#cloud-config"), "Invalid BASE64 encoding"),
    ("a template with a malformed image ID", tokens.TEMPLATE, _template(imageId="flatcar"), "InvalidAMIID.Malformed"),
    ("a template with an invalid disk", tokens.TEMPLATE,
     _template(blockDeviceMappings=[{"ebs": {"volumeType": "gp3", "iops": 100}}]), "iops of 100 is too low"),
    ("a template with groups in two places", tokens.TEMPLATE,
     lambda r: _template(vpcSecurityGroupIds=[r.group.id], networkInterfaces=[{"deviceIndex": 0}])(r),
     "may not be specified on the same request"),
    ("a template with a missing identity", tokens.TEMPLATE,
     _template(iamInstanceProfile={"name": "nobody"}), "Invalid IAM Instance Profile name"),
    ("a placement group with an unknown strategy", tokens.PLACEMENT, lambda _: {"name": "p", "strategy": "near"},
     "parameter strategy is invalid"),
    ("a placement group with 8 partitions", tokens.PLACEMENT,
     lambda _: {"name": "p", "strategy": "partition", "partitionCount": 8}, "partitionCount is invalid"),
    ("a placement group twice", tokens.PLACEMENT,
     lambda r: r.make(tokens.PLACEMENT, "x", name="p", strategy="cluster").inputs, "InvalidPlacementGroup.Duplicate"),
    ("a group whose minimum is above its maximum", tokens.SCALING_GROUP, lambda r: _group(r, minSize=4), "Max bound, 3, must be"),
    ("a group that desires more than its maximum", tokens.SCALING_GROUP, lambda r: _group(r, desiredCapacity=4),
     "Desired capacity:4 must be between the specified min size:1 and max size:3"),
    ("a group without a template", tokens.SCALING_GROUP, lambda r: _group(r, launchTemplate={}),
     "Valid requests must contain either LaunchTemplate"),
    ("a group whose template has no image", tokens.SCALING_GROUP, lambda r: _group(r, {"imageId": ""}),
     "fully-formed launch template. The request must contain the parameter ImageId"),
    ("a group whose template has no machine", tokens.SCALING_GROUP, lambda r: _group(r, {"instanceType": ""}),
     "must contain the parameter InstanceType"),
    ("a group without a zone or subnet", tokens.SCALING_GROUP, lambda r: _group(r, vpcZoneIdentifiers=[]),
     "At least one Availability Zone or VPC Subnet"),
    ("a group in two VPCs", tokens.SCALING_GROUP, lambda r: _group(r, vpcZoneIdentifiers=[r.a.id, r.away.id]),
     "must be in the same VPC"),
    ("a group in missing subnets", tokens.SCALING_GROUP, lambda r: _group(r, vpcZoneIdentifiers=["subnet-1"]),
     "The subnet ID 'subnet-1' does not exist"),
    ("a group whose template has another VPC's groups", tokens.SCALING_GROUP,
     lambda r: _group(r, {"vpcSecurityGroupIds": [r.stranger.id]}), "belong to different networks"),
    ("a group behind a target group of addresses", tokens.SCALING_GROUP,
     lambda r: _group(r, targetGroupArns=[r.targets(targetType="ip").id]), "Provided Target Groups may not be valid"),
    ("a tag of a missing group", SCALING_TAG, lambda _: {"autoscalingGroupName": "g", "tag": {"key": "a"}},
     "AutoScalingGroup name not found"),
    ("a disk of an unknown type", tokens.VOLUME, _disk(type="fast"), "Invalid value 'fast' for VolumeType"),
    ("a disk in an unknown zone", tokens.VOLUME, _disk(availabilityZone="eu-west-1z"), "zones of eu-west-1 are"),
    ("a disk without a size", tokens.VOLUME, lambda _: {"availabilityZone": "eu-west-1a"}, "size/snapshot"),
    ("a disk that is too small", tokens.VOLUME, _disk(type="io2", iops=100, size=1), "too small for volume type io2"),
    ("a disk that is too large", tokens.VOLUME, _disk(type="gp2", size=16385), "too large for volume type gp2"),
    ("an io2 without iops", tokens.VOLUME, _disk(type="io2"), "iops must be specified for io2 volumes"),
    ("a gp2 with iops", tokens.VOLUME, _disk(type="gp2", iops=300), "iops is not supported for gp2 volumes"),
    ("an io1 with too many iops", tokens.VOLUME, _disk(type="io1", iops=64001, size=16000), "maximum is 64000"),
    ("an io2 with too many iops", tokens.VOLUME, _disk(type="io2", iops=256001, size=1000), "maximum is 256000"),
    ("a gp3 with too few iops", tokens.VOLUME, _disk(type="gp3", iops=2999), "too low; minimum is 3000"),
    ("an io1 too small for its iops", tokens.VOLUME, _disk(type="io1", iops=5001), "too high; maximum is 50"),
    ("a gp3 too small for its iops", tokens.VOLUME, _disk(type="gp3", iops=5001, size=10), "too high; maximum is 500"),
    ("a gp3 with more throughput than its iops allow", tokens.VOLUME, _disk(type="gp3", throughput=751),
     "takes 125 to 750 MiB/s"),
    ("an io2 with throughput", tokens.VOLUME, _disk(type="io2", iops=100, throughput=500), "throughput is not supported"),
    ("a disk with another region's key", tokens.VOLUME, _disk(kmsKeyId="arn:aws:kms:eu-west-1:1:key/1"),
     "Key 'arn:aws:kms:eu-west-1:1:key/1' does not exist"),
    ("a disk attached to an instance in another zone", ATTACHMENT,
     lambda r: {"volumeId": r.volume(availabilityZone="eu-west-1b").id, "instanceId": r.instance().id,
                "deviceName": "/dev/sdf"},
     "InvalidVolume.ZoneMismatch.*eu-west-1b and eu-west-1a differ"),
    ("a disk attached to two instances", ATTACHMENT, lambda r: {**_attached(r), "instanceId": r.instance("other").id},
     "VolumeInUse: vol-0.* is already attached.*delete_before_replace"),
    ("two disks at one device", ATTACHMENT, lambda r: {**_attached(r), "volumeId": r.volume("other").id},
     "Attachment point /dev/sdf is already in use"),
    ("a disk at an invalid device", ATTACHMENT,
     lambda r: {"volumeId": r.volume().id, "instanceId": r.instance().id, "deviceName": "/dev/nvme1n1"},
     "is not a valid EBS device name"),
    ("a balancer with two subnets in a zone", tokens.BALANCER,
     lambda r: _balancer(r, subnets=[r.a.id, r.subnet("a", "10.0.9.0/24", "again").id]),
     "multiple subnets in the same Availability Zone"),
    ("a balancer without subnets", tokens.BALANCER, lambda r: _balancer(r, subnets=[]), "At least one subnet"),
    ("an application balancer in one zone", tokens.BALANCER,
     lambda r: _balancer(r, subnets=[r.a.id], loadBalancerType="application"), "two different Availability Zones"),
    ("a balancer in two VPCs", tokens.BALANCER, lambda r: _balancer(r, subnets=[r.a.id, r.away.id]),
     "not all in one VPC"),
    ("a balancer with another VPC's group", tokens.BALANCER, lambda r: _balancer(r, securityGroups=[r.stranger.id]),
     "belong to different networks"),
    ("a balancer at an address outside its subnet", tokens.BALANCER, lambda r: _mapped(r, "10.0.2.10"),
     "does not fall within the subnet's address range"),
    ("a balancer at one of AWS's addresses", tokens.BALANCER, lambda r: _mapped(r, "10.0.1.1"), "reserved address range"),
    ("a balancer at another's address", tokens.BALANCER,
     lambda r: _mapped(r, str(r.interface().outputs["privateIp"])), "Address 10.0.1.4 is in use"),
    ("a public balancer at a private address", tokens.BALANCER, lambda r: _mapped(r, "10.0.1.10", internal=False),
     "for internal Network Load Balancers only"),
    ("a balancer that may not write its logs", tokens.BALANCER,
     lambda r: _balancer(r, accessLogs={"bucket": r.bucket.id, "enabled": True}), "Access Denied for bucket: apes-logs"),
    ("a balancer with logs to a missing bucket", tokens.BALANCER,
     lambda r: _balancer(r, accessLogs={"bucket": "nowhere", "enabled": True}), "NoSuchBucket"),
    ("a target group without a VPC", tokens.TARGETS, lambda _: {"name": "t", "port": 1, "protocol": "TCP"},
     "A VPC ID must be specified"),
    ("a target group with a name of 33 characters", tokens.TARGETS,
     lambda r: {"name": "t" * 33, "port": 1, "protocol": "TCP", "vpcId": r.vpc.id}, "33 characters.*at most 32"),
    ("a check of a path by TCP", tokens.TARGETS,
     lambda r: {"name": "t", "port": 1, "protocol": "TCP", "vpcId": r.vpc.id,
                "healthCheck": {"protocol": "TCP", "path": "/livez"}},
     "should not be set when protocol is TCP"),
    ("a check every 4 s", tokens.TARGETS,
     lambda r: {"name": "t", "port": 1, "protocol": "TCP", "vpcId": r.vpc.id, "healthCheck": {"interval": 4}},
     "range .5 - 300., got 4"),
    ("a listener on a port twice", tokens.LISTENER,
     lambda r: r.listener(r.balancer(), r.targets(), "x").inputs, "DuplicateListener"),
    ("a listener with a protocol that its balancer lacks", tokens.LISTENER,
     lambda r: _listener(r, r.balancer(), r.targets(), protocol="HTTP"), "Listener protocol 'HTTP' must be one of"),
    ("a listener with a protocol that its targets lack", tokens.LISTENER,
     lambda r: _listener(r, r.balancer(), r.targets(protocol="UDP")), "not supported with a target group with the .* 'UDP'"),
    ("a target group of two balancers", tokens.LISTENER,
     lambda r: (r.listener(r.balancer(), r.targets(), "x"),
                _listener(r, r.balancer("second"), r.aws.world.of_type(tokens.TARGETS)[0]))[1],
     "TargetGroupAssociationLimit"),
    ("a target group of another VPC", tokens.LISTENER,
     lambda r: _listener(r, r.balancer(), r.targets(vpcId=r.abroad.id)), "is in another VPC than the load balancer"),
]  # fmt: skip


@pytest.mark.parametrize(("token", "inputs", "words"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_invalid_machines_are_refused(region: Region, token: str, inputs: Inputs, words: str) -> None:
    region.refuses(words, token, "refused", **inputs(region))


def test_user_data_of_16_kib_is_accepted(region: Region) -> None:
    region.instance(userData="x" * 16384)
    region.template(userData=encoded("x" * 16384))


def test_a_disk_does_not_shrink_and_is_not_deleted_while_it_is_attached(region: Region) -> None:
    _attached(region)
    (volume,) = region.aws.world.of_type(tokens.VOLUME)
    grown = region.aws.update(volume, size=200)
    with pytest.raises(RefusalError, match="New size cannot be smaller than existing size"):
        region.aws.update(grown, size=100)
    with pytest.raises(RefusalError, match="VolumeInUse: Volume vol-0.* is currently attached"):
        region.aws.delete(grown)


def test_an_instance_is_deleted_despite_attachments_unless_it_is_protected(region: Region) -> None:
    _attached(region)
    (host,) = region.aws.world.of_type(tokens.INSTANCE)
    kept = region.aws.update(host, disableApiTermination=True)
    with pytest.raises(RefusalError, match="may not be terminated. Modify its 'disableApiTermination'"):
        region.aws.delete(kept)
    region.aws.delete(region.aws.update(kept, disableApiTermination=False))


def test_resources_that_machines_use_cannot_be_deleted(region: Region) -> None:
    region.make(tokens.PLACEMENT, "close", name="close", strategy="cluster")
    region.instance(placementGroup="close")
    (placement,) = region.aws.world.of_type(tokens.PLACEMENT)
    with pytest.raises(RefusalError, match="InvalidPlacementGroup.InUse"):
        region.aws.delete(placement)
    targets = region.targets()
    region.listener(region.balancer(), targets)
    with pytest.raises(RefusalError, match="currently in use by a listener"):
        region.aws.delete(targets)


def test_vcpus_are_limited_by_the_quota(api: Any) -> None:
    region = Region(api("aws", offers=Offers(vcpus=lambda cloud, region: 8)))
    host = region.instance()
    region.make(tokens.SCALING_GROUP, **_group(region, desiredCapacity=2))
    host = region.aws.update(host, instanceType="m7i.xlarge")
    region.refuses(
        "VcpuLimitExceeded.*vCPU limit of 8.*8 vCPUs run in eu-west-1, 2 more",
        tokens.INSTANCE,
        "one-more",
        **_instance()(region),
    )
    (group,) = region.aws.world.of_type(tokens.SCALING_GROUP)
    with pytest.raises(RefusalError, match="4 vCPUs run in eu-west-1, 6 more"):
        region.aws.update(group, desiredCapacity=3)


@pytest.mark.parametrize(
    ("token", "old", "new", "paths"),
    [
        (tokens.INSTANCE, {"userData": "a"}, {"userData": "b"}, []),
        (tokens.INSTANCE, {"userData": "a"}, {"userData": "b", "userDataReplaceOnChange": True}, ["userData"]),
        (tokens.INSTANCE, {"primaryNetworkInterface": {"networkInterfaceId": "a"}},
         {"primaryNetworkInterface": {"networkInterfaceId": "b"}}, ["primaryNetworkInterface.networkInterfaceId"]),
        (tokens.INSTANCE, {"ami": "ami-1"}, {"ami": "ami-2"}, ["ami"]),
        (tokens.INSTANCE, {"iamInstanceProfile": "a"}, {"iamInstanceProfile": "b"}, []),
        (tokens.TEMPLATE, {"userData": "a"}, {"userData": "b"}, []),
        (tokens.TEMPLATE, {"name": "abc"}, {"name": "abd"}, ["name"]),
        (tokens.PLACEMENT, {"strategy": "cluster"}, {"strategy": "spread"}, ["strategy"]),
        (tokens.SCALING_GROUP, {"minSize": 1}, {"minSize": 2}, []),
        (tokens.SCALING_GROUP, {"name": "a"}, {"name": "b"}, ["name"]),
        (SCALING_TAG, {"tag": {"key": "a", "value": "1"}}, {"tag": {"key": "a", "value": "2"}}, []),
        (SCALING_TAG, {"tag": {"key": "a"}}, {"tag": {"key": "b"}}, ["tag.key"]),
        (tokens.VOLUME, {"size": 1, "iops": 1}, {"size": 2, "iops": 2}, []),
        (tokens.VOLUME, {"availabilityZone": "a"}, {"availabilityZone": "b"}, ["availabilityZone"]),
        (tokens.VOLUME, {"kmsKeyId": "a"}, {"kmsKeyId": "b"}, ["kmsKeyId"]),
        (ATTACHMENT, {"instanceId": "a"}, {"instanceId": "b"}, ["instanceId"]),
        (tokens.BALANCER, {"loadBalancerType": "network"}, {"loadBalancerType": "network", "securityGroups": ["a"]},
         ["securityGroups[0]"]),
        (tokens.BALANCER, {"loadBalancerType": "network", "securityGroups": ["a"]},
         {"loadBalancerType": "network", "securityGroups": ["b"]}, []),
        (tokens.BALANCER, {"internal": True}, {"internal": False}, ["internal"]),
        (tokens.TARGETS, {"port": 1}, {"port": 2}, ["port"]),
        (tokens.TARGETS, {"healthCheck": {"path": "/a"}}, {"healthCheck": {"path": "/b"}}, []),
        (tokens.LISTENER, {"loadBalancerArn": "a"}, {"loadBalancerArn": "b"}, ["loadBalancerArn"]),
        (tokens.LISTENER, {"port": 1}, {"port": 2}, []),
    ],
)  # fmt: skip
def test_which_changes_replace_machines(api: Any, token: str, old: Any, new: Any, paths: list[str]) -> None:
    assert api("aws").replaces(token, old, new) == paths
