"""What the controllers of volumes may do. Pure: no resource is made here.

From the policies that the drivers of Amazon EBS and Amazon EFS come with ("example-iam-policy.json", "iam-policy-example
.json"), narrowed to what carries the cluster's tag beside the driver's own: an etcd's volumes carry the first alone. Of
snapshots there is nothing: no driver here takes any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stacks.aws.policies import Statement

OF_DISKS, OF_FILES = "ebs.csi.aws.com/cluster", "efs.csi.aws.com/cluster"
"""Tags that the drivers put on all that they make, with the value "true"."""
CLUSTER = "cluster"
"""Ours, of everything of a cluster (`stacks.aws.tags`)."""
_LOOKS = ["AvailabilityZones", "Instances", "Tags", "Volumes", "VolumesModifications", "VolumeStatus"]
_GRANT = "kms:CreateGrant"
_USE_KEY = ["Decrypt", "DescribeKey", "GenerateDataKeyWithoutPlaintext", "ReEncryptFrom", "ReEncryptTo"]
""""Requirements for Amazon EBS encryption", permissions for users."""


@dataclass(frozen=True)
class Place:
    """Where volumes are made, and of which cluster. vpc: its id. key: the ARN of the cluster's key."""

    cluster: str
    region: str
    vpc: str
    key: str
    partition: str
    account: str

    def arn(self, service: str, rest: str) -> str:
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{rest}"


def disks(place: Place, machines: str) -> list[Statement]:
    """To make volumes of EBS, and to attach them to machines whose tag `role` is like `machines`."""
    volumes = place.arn("ec2", "volume/*")
    own = {f"ec2:ResourceTag/{OF_DISKS}": "true", f"ec2:ResourceTag/{CLUSTER}": place.cluster}
    asked = {f"aws:RequestTag/{OF_DISKS}": "true", f"aws:RequestTag/{CLUSTER}": place.cluster}
    workers = {"StringLike": {"ec2:ResourceTag/role": machines}}
    through_ec2 = {"kms:ViaService": f"ec2.{place.region}.amazonaws.com"}
    return [
        _allow(place, "SeeVolumes", [f"ec2:Describe{what}" for what in _LOOKS], "*", {}),
        _allow(place, "MakeVolumes", ["ec2:CreateVolume"], volumes, asked, {"Bool": {"ec2:Encrypted": "true"}}),
        _allow(place, "TagNewVolumes", ["ec2:CreateTags"], volumes, {**asked, "ec2:CreateAction": "CreateVolume"}),
        _allow(place, "UseVolumes", _named("ec2", "Attach", "Detach", "Modify", "Delete", of="Volume"), volumes, own),
        _allow(
            place,
            "UseMachines",
            _named("ec2", "Attach", "Detach", of="Volume"),
            place.arn("ec2", "instance/*"),
            {f"ec2:ResourceTag/{CLUSTER}": place.cluster},
            workers,
        ),
        _statement("EncryptVolumes", _named("kms", *_USE_KEY), place.key, {"StringEquals": through_ec2}),
        _statement(
            "GrantKey",
            [_GRANT],
            place.key,
            {"StringEquals": through_ec2, "Bool": {"kms:GrantIsForAWSResource": "true"}},
        ),
    ]


def files(place: Place, file_system: str) -> list[Statement]:
    """To make access points of one file system of EFS. file_system: its ARN."""
    points = place.arn("elasticfilesystem", "access-point/*")
    own = {f"aws:ResourceTag/{OF_FILES}": "true", f"aws:ResourceTag/{CLUSTER}": place.cluster}
    asked = {f"aws:RequestTag/{OF_FILES}": "true", f"aws:RequestTag/{CLUSTER}": place.cluster}
    service = "elasticfilesystem"
    made = {**asked, f"{service}:CreateAction": "CreateAccessPoint"}
    return [
        _allow(place, "SeeZones", ["ec2:DescribeAvailabilityZones"], "*", {}),
        _allow(
            place,
            "SeeFiles",
            _named(service, "FileSystems", "MountTargets", "AccessPoints", of="", verb="Describe"),
            file_system,
            {},
        ),
        _allow(place, "SeeAccessPoints", [f"{service}:DescribeAccessPoints"], points, own),
        _allow(place, "MakeAccessPoints", [f"{service}:CreateAccessPoint"], file_system, asked),
        _allow(place, "TagNewAccessPoints", [f"{service}:TagResource"], points, made),
        _allow(place, "DeleteAccessPoints", [f"{service}:DeleteAccessPoint"], points, own),
    ]


def only_by_mount(file_system: str) -> list[Statement]:
    """Who reaches a mount target may read and write, and nobody without TLS ("Using IAM to control file system data
    access"). file_system: its ARN."""
    clients = _named("elasticfilesystem", "Mount", "Write", "RootAccess", of="", verb="Client")
    mounted = {"Bool": {"elasticfilesystem:AccessedViaMountTarget": "true"}}
    in_clear = {"Bool": {"aws:SecureTransport": "false"}}
    return [
        {"Principal": {"AWS": "*"}, **_statement("Mounted", clients, file_system, mounted)},
        {
            "Sid": "NotInClear",
            "Effect": "Deny",
            "Principal": {"AWS": "*"},
            "Action": "*",
            "Resource": file_system,
            "Condition": in_clear,
        },
    ]


def _named(service: str, *what: str, of: str = "", verb: str = "") -> list[str]:
    return [f"{service}:{verb}{each}{of}" for each in what]


def _allow(
    place: Place, sid: str, actions: list[str], resource: str, equal: Mapping[str, str], more: Statement | None = None
) -> Statement:
    """With credentials that were given to a machine in the VPC alone: EC2 is asked over the internet."""
    inside = {"aws:Ec2InstanceSourceVpc": place.vpc, **equal}
    return _statement(sid, actions, resource, {"StringEquals": inside, **(more or {})})


def _statement(sid: str, actions: list[str], resource: str, condition: Statement) -> dict[str, object]:
    return {"Sid": sid, "Effect": "Allow", "Action": actions, "Resource": resource, "Condition": condition}
