"""What the volume controllers may do. Pure: creates no resources.

From the policies that ship with the drivers of Amazon EBS and Amazon EFS ("example-iam-policy.json",
"iam-policy-example.json"), restricted to resources that have the cluster's tag in addition to the driver's: an etcd's
volumes have only the cluster's. Snapshots are omitted: no driver here creates any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stacks.aws.policies import Statement

OF_DISKS, OF_FILES = "ebs.csi.aws.com/cluster", "efs.csi.aws.com/cluster"
"""Tags that the drivers add to everything that they create, with the value "true"."""
CLUSTER = "cluster"
"""Our tag on every resource of a cluster (`stacks.aws.tags`)."""
_LOOKS = ["AvailabilityZones", "Instances", "Tags", "Volumes", "VolumesModifications", "VolumeStatus"]
_GRANT = "kms:CreateGrant"
_USE_KEY = ["Decrypt", "DescribeKey", "GenerateDataKeyWithoutPlaintext", "ReEncryptFrom", "ReEncryptTo"]
""""Requirements for Amazon EBS encryption", permissions for users."""


@dataclass(frozen=True)
class Place:
    """Where volumes are created, and for which cluster. vpc: its ID. key: the ARN of the cluster's key."""

    cluster: str
    region: str
    vpc: str
    key: str
    partition: str
    account: str

    def arn(self, service: str, rest: str) -> str:
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{rest}"


def disks(place: Place, machines: str) -> list[Statement]:
    """Permit creating EBS volumes, and attaching them to machines whose tag `role` matches `machines`."""
    volumes = place.arn("ec2", "volume/*")
    own = {f"ec2:ResourceTag/{OF_DISKS}": "true", f"ec2:ResourceTag/{CLUSTER}": place.cluster}
    requested = {f"aws:RequestTag/{OF_DISKS}": "true", f"aws:RequestTag/{CLUSTER}": place.cluster}
    workers = {"StringLike": {"ec2:ResourceTag/role": machines}}
    through_ec2 = {"kms:ViaService": f"ec2.{place.region}.amazonaws.com"}
    return [
        _allow(place, "SeeVolumes", [f"ec2:Describe{what}" for what in _LOOKS], "*", {}),
        _allow(place, "MakeVolumes", ["ec2:CreateVolume"], volumes, requested, {"Bool": {"ec2:Encrypted": "true"}}),
        _allow(place, "TagNewVolumes", ["ec2:CreateTags"], volumes, {**requested, "ec2:CreateAction": "CreateVolume"}),
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
    """Permit creating access points of one EFS file system. file_system: its ARN."""
    points = place.arn("elasticfilesystem", "access-point/*")
    own = {f"aws:ResourceTag/{OF_FILES}": "true", f"aws:ResourceTag/{CLUSTER}": place.cluster}
    requested = {f"aws:RequestTag/{OF_FILES}": "true", f"aws:RequestTag/{CLUSTER}": place.cluster}
    service = "elasticfilesystem"
    new = {**requested, f"{service}:CreateAction": "CreateAccessPoint"}
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
        _allow(place, "MakeAccessPoints", [f"{service}:CreateAccessPoint"], file_system, requested),
        _allow(place, "TagNewAccessPoints", [f"{service}:TagResource"], points, new),
        _allow(place, "DeleteAccessPoints", [f"{service}:DeleteAccessPoint"], points, own),
    ]


def only_by_mount(file_system: str) -> list[Statement]:
    """Permit reading and writing through a mount target, only with TLS ("Using IAM to control file system data access").

    file_system: its ARN."""
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
    return [f"{service}:{verb}{word}{of}" for word in what]


def _allow(
    place: Place, sid: str, actions: list[str], resource: str, equal: Mapping[str, str], more: Statement | None = None
) -> Statement:
    """Allow actions only with credentials issued to a machine in the VPC: requests to EC2 go over the internet."""
    inside = {"aws:Ec2InstanceSourceVpc": place.vpc, **equal}
    return _statement(sid, actions, resource, {"StringEquals": inside, **(more or {})})


def _statement(sid: str, actions: list[str], resource: str, condition: Statement) -> dict[str, object]:
    return {"Sid": sid, "Effect": "Allow", "Action": actions, "Resource": resource, "Condition": condition}
