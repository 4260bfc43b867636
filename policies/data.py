"""What keeps data, and that it is protected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cluster.spec import Cluster
from policies.model import Resource, Rule, Violation
from policies.values import text

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


RULES = (
    Rule(
        "data-protected",
        "Disks, file systems, keys and buckets are protected: no change of a spec or program deletes one.",
        _protected,
    ),
)
