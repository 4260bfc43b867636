"""Shared file systems of Amazon EFS."""

from __future__ import annotations

import re

from sandbox.simcloud.aws.addresses import claimed, first_free
from sandbox.simcloud.aws.common import arn, generated_id, named, others, refused, tags
from sandbox.simcloud.aws.documents import of_resource
from sandbox.simcloud.aws.keys import KEY_OF
from sandbox.simcloud.aws.security import groups_match_subnets
from sandbox.simcloud.aws.tokens import FILE_SYSTEM, SECURITY_GROUP, SUBNET
from sandbox.simcloud.identifiers import digest
from sandbox.simcloud.rules import Call, Naming, Reason, Reference, ResourceType, Saying
from sandbox.simcloud.values import Properties


def _file_system_outputs(call: Call) -> Properties:
    return {
        "arn": arn(call, "elasticfilesystem", f"file-system/{call.id}"),
        "dnsName": f"{call.id}.efs.{call.region}.amazonaws.com",
        "ownerId": call.settings.account,
        "performanceMode": call.inputs.get("performanceMode", "generalPurpose"),
        **tags(call),
    }


def _key_with_encryption(call: Call) -> None:
    if call.inputs.get("kmsKeyId") and not call.inputs.get("encrypted"):
        raise refused("", "encrypted must be set to true when kms_key_id is specified", "set encrypted", "encrypted")


def _target_outputs(call: Call) -> Properties:
    subnet = call.target("subnetId")
    system = call.target("fileSystemId")
    old = call.old.outputs if call.old else {}
    address = call.text("ipAddress") or old.get("ipAddress") or (first_free(call, subnet) if subnet else "")
    return {
        "ipAddress": address,
        # Other resources in the subnet look for taken addresses here.
        "privateIp": address,
        "availabilityZoneName": subnet.outputs["availabilityZone"] if subnet else "",
        "networkInterfaceId": f"eni-0{digest(call.id)[:16]}",
        "fileSystemArn": system.outputs["arn"] if system else "",
        "dnsName": system.outputs["dnsName"] if system else "",
        "ownerId": call.settings.account,
    }


def _one_per_zone(call: Call) -> None:
    subnet = call.target("subnetId")
    for other in others(call):
        zone, system = other.outputs.get("availabilityZoneName"), other.inputs.get("fileSystemId")
        if subnet and (zone, system) == (subnet.outputs["availabilityZone"], call.text("fileSystemId")):
            raise refused(
                "MountTargetConflict",
                "mount target already exists in this AZ",
                f"{other.id} is in {zone}; a file system has one mount target per zone",
            )


_missing = Saying(
    "api error FileSystemNotFound: File system '{value}' does not exist.",
    "{path} must name something that exists in {region}",
)

_file_system = ResourceType(
    token=FILE_SYSTEM,
    noun="file system",
    code="FileSystemNotFound",
    identify=generated_id("fs"),
    outputs=_file_system_outputs,
    where=("region",),
    naming=Naming("creationToken", re.compile(r".{1,64}"), 64, "it may have 64 characters", within=()),
    replace_on=("availabilityZoneName", "creationToken", "encrypted", "kmsKeyId", "performanceMode"),
    references=(Reference("kmsKeyId", KEY_OF, holds=False),),
    refuse=(_key_with_encryption,),
    says={
        Reason.MISSING: _missing,
        Reason.TAKEN: Saying(
            "api error FileSystemAlreadyExists: File system already exists with creation token {name}",
            "import the existing one, or delete it",
        ),
        Reason.IN_USE: Saying(
            "api error FileSystemInUse: Resource {value} is in use", "delete its mount targets first: {users}"
        ),
    },
)

_target = ResourceType(
    token="aws:efs/mountTarget:MountTarget",
    noun="mount target",
    code="MountTargetNotFound",
    identify=generated_id("fsmt"),
    outputs=_target_outputs,
    where=("region",),
    replace_on=("fileSystemId", "subnetId", "ipAddress", "ipAddressType"),
    references=(
        Reference("fileSystemId", (FILE_SYSTEM,)),
        Reference("subnetId", (SUBNET,)),
        Reference("securityGroups[]", (SECURITY_GROUP,)),
    ),
    refuse=(
        _one_per_zone,
        groups_match_subnets(("securityGroups[]",), lambda call: named(call, "subnetId")),
        claimed("ipAddress", lambda call: call.target("subnetId")),
    ),
)

_policy = ResourceType(
    token="aws:efs/fileSystemPolicy:FileSystemPolicy",
    noun="file system policy",
    code="PolicyNotFound",
    identify=lambda call: call.text("fileSystemId"),
    where=("region",),
    replace_on=("fileSystemId",),
    references=(Reference("fileSystemId", (FILE_SYSTEM,), holds=False),),
    refuse=(of_resource("policy", "elasticfilesystem", "InvalidPolicyException"),),
    upserts=True,
)

TYPES = (_file_system, _target, _policy)
