"""What keeps data, and that it is protected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cluster.spec import Cluster
from stacks.policies.model import Resource, Rule, Violation
from stacks.policies.values import first, is_hidden, is_one_of, names_of, of_types, text

STORES: dict[str, str] = {
    "aws:ebs/volume:Volume": "a disk",
    "aws:efs/fileSystem:FileSystem": "a file system",
    "aws:kms/key:Key": "a key, and with it all that is encrypted by it",
    "aws:s3/bucket:Bucket": "a bucket",
    "aws:s3/bucketV2:BucketV2": "a bucket",
    "azure-native:compute:Disk": "a disk",
    "azure-native:keyvault:Key": "a key, and with it all that is encrypted by it",
    "azure-native:keyvault:Vault": "keys, and with them all that is encrypted by them",
    "azure-native:storage:BlobContainer": "a bucket",
    "azure-native:storage:StorageAccount": "buckets",
    "gcp:compute/disk:Disk": "a disk",
    "gcp:compute/regionDisk:RegionDisk": "a disk",
    "gcp:kms/cryptoKey:CryptoKey": "a key, and with it all that is encrypted by it",
    "gcp:kms/keyRing:KeyRing": "keys, and with them all that is encrypted by them",
    "gcp:storage/bucket:Bucket": "a bucket",
}
"""Type -> what is lost with a resource of it."""

MACHINES: dict[str, str] = {
    "aws:ec2/instance:Instance": "an etcd host with its local disks",
    "azure-native:compute:VirtualMachine": "an etcd host with its local disks",
    "gcp:compute/instance:Instance": "an etcd host with its local disks",
}
"""The same of machines of their own, where their tag or label `role` says that they are members of etcd, or where they
have none to tell. Other hosts are of groups, and keep nothing."""

AUTHORITIES: dict[str, str] = {
    "pulumi-python:dynamic/pki:Authority": "an authority, and every certificate that it has signed",
    "pulumi-python:dynamic/pki:Secret": "a key that is made once",
}
"""The same of what only the stack's state holds."""


_ROLE = ("tags.role", "labels.role", "tagsAll.role", "effectiveLabels.role")
_MEMBERS = ("etcd-main", "etcd-events")


def kept_by(resource: Resource) -> str | None:
    """What would be lost with a resource; None if it can be made anew."""
    role = text(resource.inputs, *_ROLE)
    machines = MACHINES if not role or role.startswith(_MEMBERS) else {}
    found = {**STORES, **machines, **AUTHORITIES}.get(resource.type)
    return found or ("what is marked `protect`" if resource.protect else None)


def _protected(_: Cluster, resources: Sequence[Resource]) -> Iterator[Violation]:
    for resource in resources:
        if resource.type in STORES and not resource.protect:
            yield Violation(
                "data-protected",
                resource,
                f"{resource.type} {resource.name} is not protected; a change of the program could delete "
                f"{STORES[resource.type]}",
                "declare it with ResourceOptions(protect=True)",
            )


_DAY_MS, _DAY_S = 86_400_000, 86_400
_CONTAINER, _POLICY = "azure-native:storage:BlobContainer", "azure-native:storage:BlobContainerImmutabilityPolicy"
_LOCK = "aws:s3/bucketObjectLockConfiguration:BucketObjectLockConfiguration"


def _locked(cluster: Cluster, resources: Sequence[Resource]) -> Iterator[Violation]:
    wanted = -(-cluster.spec.control_plane.audit_log.keep // _DAY_MS)
    for resource in resources:
        if not (text(resource.inputs, *_ROLE) == "audit" or text(resource.inputs, "containerName") == "audit-logs"):
            continue
        if resource.type in STORES and (days := _lock_days(resource, resources)) is not None and days < wanted:
            yield Violation(
                "audit-logs-locked",
                resource,
                f"{resource.type} {resource.name} is locked for {days} days, and control_plane.audit_log.keep says {wanted}",
                f"lock it for {wanted} days",
            )


def _lock_days(bucket: Resource, resources: Sequence[Resource]) -> int | None:
    """None where nobody can look."""
    if bucket.type == _CONTAINER:
        policies = of_types(resources, (_POLICY,))
        names = [(each, first(each.inputs, "containerName")) for each in policies]
        own = (each for each, name in names if is_hidden(name) or name == "audit-logs")
        found = [first(each.inputs, "immutabilityPeriodSinceCreationInDays") for each in own]
    elif bucket.type.startswith("aws:"):
        locks = of_types(resources, (_LOCK,))
        own = (each for each in locks if is_one_of(first(each.inputs, "bucket"), names_of(bucket)))
        found = [first(each.inputs, "rule.defaultRetention.days") for each in own]
    else:
        seconds = first(bucket.inputs, "retentionPolicy.retentionPeriod")
        found = [seconds if is_hidden(seconds) else int(seconds or 0) // _DAY_S]
    return None if any(is_hidden(each) for each in found) else max((int(each or 0) for each in found), default=0)


RULES = (
    Rule(
        "data-protected",
        "Disks, file systems, keys and buckets are protected: no change of a spec or program deletes one.",
        _protected,
    ),
    Rule(
        "audit-logs-locked",
        "Buckets for audit logs are locked for at least as long as the spec keeps them.",
        _locked,
        "S3 Object Lock, immutability policies of Azure's containers, retention policies of Cloud Storage: hosts and those who "
        "got hold of one delete and overwrite nothing.",
    ),
)
