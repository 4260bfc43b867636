"""Stored data is encrypted with the cluster's own keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cluster.spec import Cluster
from stacks.policies.model import Resource, Rule, Violation
from stacks.policies.values import at, first, is_hidden, is_on, is_one_of, names_of, of_types, text

KEYS = frozenset(
    {
        "aws:kms/alias:Alias",
        "aws:kms/key:Key",
        "azure-native:compute:DiskEncryptionSet",
        "azure-native:keyvault:Key",
        "gcp:kms/cryptoKey:CryptoKey",
    }
)
"""Keys, and resources that refer to one. A disk encryption set of Azure must itself name a key: see `DISKS`."""


@dataclass(frozen=True)
class Kept:
    """Encrypted storage inside a resource. path: its property. key: property below it that names its key. on: property below
    it that must be true.

    without: a property that exempts the storage, and the values that do not exempt it (none: any value exempts). always: the
    storage exists even if the property is missing, and then has no key.
    """

    path: str
    key: str
    on: str = ""
    without: tuple[str, tuple[str, ...]] = ("", ())
    always: bool = False

    def is_meant(self, value: Any) -> bool:
        name, values = self.without
        marker = first(value, name) if name else None
        return marker is None or bool(values) and marker not in values


_TEMPLATE_OF_GOOGLE = (
    Kept("disks[]", "diskEncryptionKey.kmsKeySelfLink", without=("type", ("SCRATCH",)), always=True),
)
_SET = "managedDisk.diskEncryptionSet.id"
_ATTACHED = ("createOption", ("Attach",))

DISKS: Mapping[str, tuple[Kept, ...]] = {
    "aws:ebs/volume:Volume": (Kept("", "kmsKeyId", "encrypted"),),
    "aws:ec2/instance:Instance": (
        Kept("rootBlockDevice", "kmsKeyId", "encrypted", always=True),
        Kept("ebsBlockDevices[]", "kmsKeyId", "encrypted"),
    ),
    "aws:ec2/launchTemplate:LaunchTemplate": (Kept("blockDeviceMappings[].ebs", "kmsKeyId", "encrypted", always=True),),
    "aws:efs/fileSystem:FileSystem": (Kept("", "kmsKeyId", "encrypted"),),
    "azure-native:compute:Disk": (Kept("", "encryption.diskEncryptionSetId"),),
    "azure-native:compute:DiskEncryptionSet": (Kept("", "activeKey.keyUrl"),),
    "azure-native:compute:VirtualMachine": (
        Kept("storageProfile.osDisk", _SET, always=True),
        Kept("storageProfile.dataDisks[]", _SET, without=_ATTACHED),
    ),
    "azure-native:compute:VirtualMachineScaleSet": (
        Kept("virtualMachineProfile.storageProfile.osDisk", _SET, always=True),
        Kept("virtualMachineProfile.storageProfile.dataDisks[]", _SET, without=_ATTACHED),
    ),
    "gcp:compute/disk:Disk": (Kept("", "diskEncryptionKey.kmsKeySelfLink"),),
    "gcp:compute/instance:Instance": (Kept("bootDisk", "kmsKeySelfLink", without=("source", ()), always=True),),
    "gcp:compute/instanceTemplate:InstanceTemplate": _TEMPLATE_OF_GOOGLE,
    "gcp:compute/regionDisk:RegionDisk": (Kept("", "diskEncryptionKey.kmsKeySelfLink"),),
    "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate": _TEMPLATE_OF_GOOGLE,
}
"""Type -> disks and file systems in it, and where they name their key.

Local disks are not listed: those of AWS and Google Cloud are always encrypted, with keys that are deleted with the
machine ("Data protection in Amazon EC2", "About Local SSD disks").
"""

AT_HOST: Mapping[str, str] = {
    "azure-native:compute:VirtualMachine": "securityProfile.encryptionAtHost",
    "azure-native:compute:VirtualMachineScaleSet": "virtualMachineProfile.securityProfile.encryptionAtHost",
}
"""Azure encrypts caches and temporary disks only on request ("Overview of managed disk encryption options")."""

SECRETS: Mapping[str, tuple[Kept, ...]] = {
    "aws:secretsmanager/secret:Secret": (Kept("", "kmsKeyId"),),
    "gcp:secretmanager/regionalSecret:RegionalSecret": (Kept("", "customerManagedEncryption.kmsKeyName"),),
    "gcp:secretmanager/secret:Secret": (
        Kept("replication.userManaged.replicas[]", "customerManagedEncryption.kmsKeyName"),
        Kept("replication.auto", "customerManagedEncryption.kmsKeyName"),
    ),
}
"""The same for secret stores. Key Vault encrypts with its own keys and offers no other choice."""

BUCKET_OF_AWS = "aws:s3/bucket:Bucket"
_ENCRYPTION_OF_AWS = (
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
    "aws:s3/bucketServerSideEncryptionConfigurationV2:BucketServerSideEncryptionConfigurationV2",
)
_RULES_OF_AWS = "rules[].applyServerSideEncryptionByDefault"


def key_names(resources: Sequence[Resource]) -> set[str]:
    """Return the names by which the cluster's own keys may be referred to."""
    return {name for key in of_types(resources, KEYS) for name in names_of(key)}


def _wrong(resource: Resource, kept: Kept, own: set[str]) -> Iterator[str]:
    """Yield what is wrong with a resource's storage, as the end of a sentence."""
    storages = [storage for storage in at(resource.inputs, kept.path) if is_hidden(storage) or kept.is_meant(storage)]
    what = f"{kept.path.removesuffix('[]')} " if kept.path else ""
    if not storages and kept.always and not list(at(resource.inputs, kept.path)):
        yield f"does not mention {what}and so uses the cloud's key for it, if any"
    for storage in storages:
        if is_hidden(storage):
            continue
        key, on = first(storage, kept.key), first(storage, kept.on) if kept.on else True
        if not is_on(on) and not is_hidden(on):
            yield f"{what}is not encrypted ({kept.on})"
        elif not key:
            yield f"{what}names no key ({kept.key})"
        elif not is_one_of(key, own):
            yield f"{what}is encrypted with {key}, which is not a key of the cluster"


def _kept(rule: str, table: Mapping[str, tuple[Kept, ...]], resources: Sequence[Resource]) -> Iterator[Violation]:
    own = key_names(resources)
    for resource in of_types(resources, table):
        for kept in table[resource.type]:
            for wrong in _wrong(resource, kept, own):
                yield Violation(
                    rule,
                    resource,
                    f"{resource.type} {resource.name} {wrong}",
                    f"name a key of the stack in {'.'.join(filter(None, (kept.path, kept.key)))}",
                )


def _disks(_: Cluster, resources: Sequence[Resource]) -> Iterator[Violation]:
    yield from _kept("disks-encrypted", DISKS, resources)
    for resource in of_types(resources, AT_HOST):
        path = AT_HOST[resource.type]
        enabled = first(resource.inputs, path)
        if not is_on(enabled) and not is_hidden(enabled):
            yield Violation(
                "disks-encrypted",
                resource,
                f"{resource.type} {resource.name} does not encrypt caches and temporary disks ({path})",
                f"set {path} to true",
            )


def _secrets(_: Cluster, resources: Sequence[Resource]) -> Iterator[Violation]:
    yield from _kept("secrets-encrypted", SECRETS, resources)


def _buckets(_: Cluster, resources: Sequence[Resource]) -> Iterator[Violation]:
    own = key_names(resources)
    for bucket in of_types(resources, (BUCKET_OF_AWS,)):
        keys = list(_keys_of_aws(bucket, resources))
        if not keys or not all(is_one_of(key, own) for key in keys):
            way = "give it a BucketServerSideEncryptionConfiguration with aws:kms and a key of the stack"
            yield _bucket(bucket, "is not encrypted with a key of the cluster", way)
    for bucket in of_types(resources, ("gcp:storage/bucket:Bucket",)):
        key = first(bucket.inputs, "encryption.defaultKmsKeyName")
        if not key or not is_one_of(key, own):
            way = "name a key of the stack in encryption.defaultKmsKeyName"
            yield _bucket(bucket, "is not encrypted with a key of the cluster", way)
    for account in of_types(resources, ("azure-native:storage:StorageAccount",)):
        source = first(account.inputs, "encryption.keySource")
        key = first(account.inputs, "encryption.keyVaultProperties.keyName")
        if not is_hidden(source) and (
            str(source).lower() != "microsoft.keyvault" or not key or not is_one_of(key, own)
        ):
            way = (
                "set encryption.keySource to Microsoft.Keyvault and encryption.keyVaultProperties to a key of the stack"
            )
            yield _bucket(account, "is not encrypted with a key of the cluster", way)


def _keys_of_aws(bucket: Resource, resources: Sequence[Resource]) -> Iterator[Any]:
    names = names_of(bucket)
    inside = [first(bucket.inputs, "serverSideEncryptionConfiguration.rule.applyServerSideEncryptionByDefault")]
    for other in of_types(resources, _ENCRYPTION_OF_AWS):
        if is_one_of(first(other.inputs, "bucket"), names):
            inside += at(other.inputs, _RULES_OF_AWS)
    for default in filter(None, inside):
        algorithm = text(default, "sseAlgorithm")
        yield first(default, "kmsMasterKeyId") if is_hidden(algorithm) or algorithm.startswith("aws:kms") else algorithm


def _bucket(bucket: Resource, wrong: str, way_out: str) -> Violation:
    return Violation("buckets-encrypted", bucket, f"{bucket.type} {bucket.name} {wrong}", way_out)


RULES = (
    Rule(
        "disks-encrypted",
        "Disks, file systems and the system disks of machines are encrypted with a key of the stack.",
        _disks,
        "Azure encrypts caches and temporary disks only if encryptionAtHost is set; local disks of AWS and Google "
        "Cloud are always encrypted.",
    ),
    Rule(
        "buckets-encrypted",
        "Buckets and storage accounts are encrypted with a key of the stack.",
        _buckets,
    ),
    Rule(
        "secrets-encrypted",
        "Secrets in Secrets Manager and Secret Manager are encrypted with a key of the stack.",
        _secrets,
        "Key Vault encrypts with its own keys and offers no choice.",
    ),
)
