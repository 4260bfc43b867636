"""Which resources keep data, and rules that protect them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cluster.quantities import whole_days
from cluster.spec import Cluster
from stacks.policies.model import Resource, Rule, Violation
from stacks.policies.values import first, is_hidden, is_one_of, names_of, of_types, text

STORES: dict[str, str] = {
    "aws:ebs/volume:Volume": "a disk",
    "aws:efs/fileSystem:FileSystem": "a file system",
    "aws:kms/key:Key": "a key, and with it all data encrypted with it",
    "aws:s3/bucket:Bucket": "a bucket",
    "aws:s3/bucketV2:BucketV2": "a bucket",
    "azure-native:compute:Disk": "a disk",
    "azure-native:keyvault:Key": "a key, and with it all data encrypted with it",
    "azure-native:keyvault:Vault": "keys, and with them all data encrypted with them",
    "azure-native:storage:BlobContainer": "a bucket",
    "azure-native:storage:StorageAccount": "buckets",
    "gcp:compute/disk:Disk": "a disk",
    "gcp:compute/regionDisk:RegionDisk": "a disk",
    "gcp:kms/cryptoKey:CryptoKey": "a key, and with it all data encrypted with it",
    "gcp:kms/keyRing:KeyRing": "keys, and with them all data encrypted with them",
    "gcp:storage/bucket:Bucket": "a bucket",
}
"""Type -> what is lost with such a resource."""

MACHINES: dict[str, str] = {
    "aws:ec2/instance:Instance": "an etcd host with its local disks",
    "azure-native:compute:VirtualMachine": "an etcd host with its local disks",
    "gcp:compute/instance:Instance": "an etcd host with its local disks",
}
"""The same for individual machines whose tag or label `role` marks them as etcd members, or that have no such tag. Other
hosts belong to groups and keep no data."""

AUTHORITIES: dict[str, str] = {
    "pulumi-python:dynamic/pki:Authority": "an authority, and every certificate it signed",
    "pulumi-python:dynamic/pki:Secret": "a key that is generated once",
}
"""The same for data that exists only in the stack's state."""


_ROLE = ("tags.role", "labels.role", "tagsAll.role", "effectiveLabels.role")
_MEMBERS = ("etcd-main", "etcd-events")


def kept_by(resource: Resource) -> str | None:
    """Return what would be lost with a resource; None if it can be created again."""
    role = text(resource.inputs, *_ROLE)
    machines = MACHINES if not role or role.startswith(_MEMBERS) else {}
    lost = {**STORES, **machines, **AUTHORITIES}.get(resource.type)
    return lost or ("a resource marked `protect`" if resource.protect else None)


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


_DAY_S = 86_400
_CONTAINER, _POLICY = "azure-native:storage:BlobContainer", "azure-native:storage:BlobContainerImmutabilityPolicy"
_LOCK = "aws:s3/bucketObjectLockConfiguration:BucketObjectLockConfiguration"


def _locked(cluster: Cluster, resources: Sequence[Resource]) -> Iterator[Violation]:
    needed = whole_days(cluster.spec.control_plane.audit_log.keep)
    for resource in resources:
        if not (text(resource.inputs, *_ROLE) == "audit" or text(resource.inputs, "containerName") == "audit-logs"):
            continue
        if resource.type in STORES and (days := _lock_days(resource, resources)) is not None and days < needed:
            yield Violation(
                "audit-logs-locked",
                resource,
                f"{resource.type} {resource.name} is locked for {days} days, but control_plane.audit_log.keep is {needed}",
                f"lock it for {needed} days",
            )


def _lock_days(bucket: Resource, resources: Sequence[Resource]) -> int | None:
    """Return how many days a bucket is locked; None if the value is hidden."""
    if bucket.type == _CONTAINER:
        policies = of_types(resources, (_POLICY,))
        names = [(item, first(item.inputs, "containerName")) for item in policies]
        own = (item for item, name in names if is_hidden(name) or name == "audit-logs")
        days = [first(item.inputs, "immutabilityPeriodSinceCreationInDays") for item in own]
    elif bucket.type.startswith("aws:"):
        locks = of_types(resources, (_LOCK,))
        own = (item for item in locks if is_one_of(first(item.inputs, "bucket"), names_of(bucket)))
        days = [first(item.inputs, "rule.defaultRetention.days") for item in own]
    else:
        seconds = first(bucket.inputs, "retentionPolicy.retentionPeriod")
        days = [seconds if is_hidden(seconds) else int(seconds or 0) // _DAY_S]
    return None if any(is_hidden(item) for item in days) else max((int(item or 0) for item in days), default=0)


RULES = (
    Rule(
        "data-protected",
        "Disks, file systems, keys and buckets are protected: no change to a spec or program deletes one.",
        _protected,
    ),
    Rule(
        "audit-logs-locked",
        "Buckets for audit logs are locked for at least as long as the spec keeps them.",
        _locked,
        "S3 Object Lock, Azure's container immutability policies, Cloud Storage retention policies: hosts, and attackers "
        "who control one, can delete and overwrite nothing.",
    ),
)
