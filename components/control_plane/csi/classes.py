"""StorageClasses, and other configuration of the drivers that depends on the stack."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from cluster.disks import AZURE_SKUS
from cluster.spec import Cloud, Cluster
from cluster.storage import block_disk, has_block, has_file
from components.control_plane.csi.drivers import BLOCK, FILE
from components.control_plane.csi.pods import CLOUD_CONFIG
from components.control_plane.csi.rights import NAMESPACE
from components.control_plane.objects import Object, applied

Parameters = Mapping[str, Mapping[str, str]]

_NEEDED: dict[tuple[Cloud, str], frozenset[str]] = {
    (Cloud.AWS, "block"): frozenset({"kmsKeyId"}),
    (Cloud.AWS, "file"): frozenset({"fileSystemId"}),
    (Cloud.AZURE, "block"): frozenset({"diskEncryptionSetID", "resourceGroup"}),
    (Cloud.AZURE, "file"): frozenset({"storageAccount", "resourceGroup"}),
    (Cloud.AZURE, "cloud"): frozenset(
        {"tenantId", "subscriptionId", "resourceGroup", "location", "userAssignedIdentityID"}
    ),
    (Cloud.GCP, "block"): frozenset({"disk-encryption-kms-key"}),
    (Cloud.GCP, "file"): frozenset({"network", "instance-encryption-kms-key"}),
}
_OPTIONAL = {(Cloud.GCP, "file"): frozenset({"connect-mode", "reserved-ipv4-cidr", "reserved-ip-range"})}

_UNCACHED = frozenset({"premium_ssd_v2", "ultra_ssd"})
"""Kinds of disk that support no host cache (azuredisk, "Driver Parameters")."""
_NEEDS_IOPS = frozenset({"io1", "io2"})
"""Kinds of EBS that can't be created without a number of IOPS ("Amazon EBS volume types")."""
_EXPANDS = {Cloud.AWS: False, Cloud.AZURE: True, Cloud.GCP: True}
"""Whether file volumes can grow. Volumes of EFS have no size, and its driver does not resize."""


def storage_classes(cluster: Cluster, parameters: Parameters) -> str:
    """Return the text of `storage-classes.json`: a list like that of `components.control_plane.manifests.render`.

    parameters: plain values that only the stack knows, under the drivers' own names. `block` is needed with
    `cluster.storage.has_block`, `file` with `has_file`. Everything else (kind of disk, encryption, tags, protocol, file
    system, access from networks) is filled in here.

    AWS, block: `kmsKeyId` (ARN).
    AWS, file: `fileSystemId` (fs-...); volumes are access points of it.
    Azure, block: `diskEncryptionSetID` (resource id), `resourceGroup` (where disks are created).
    Azure, file: `storageAccount`, `resourceGroup`: the stack's account of kind FileStorage, with NFS, encrypted with the
    customer's key and behind a private endpoint with names in the zone privatelink.file.core.windows.net. The driver creates
    shares in it; an account that the driver created itself would not use the customer's key.
    Azure, `cloud`: what the drivers read as azure.json. `tenantId`, `subscriptionId`, `resourceGroup` (of the workers' scale
    sets), `location`, `userAssignedIdentityID` (client id of the identity of the controllers' pool).
    Google Cloud, block: `disk-encryption-kms-key` (projects/.../cryptoKeys/...).
    Google Cloud, file: `network` (full name: projects/.../global/networks/...), `instance-encryption-kms-key`; optionally
    `connect-mode`, `reserved-ipv4-cidr` or `reserved-ip-range`.

    Raises ValueError that names missing or unknown parameters, or if the spec needs no drivers.
    """
    spec, cloud = cluster.spec, cluster.spec.control_plane.cloud
    kinds = [kind for kind, has in (("block", has_block(spec)), ("file", has_file(spec))) if has]
    if not kinds:
        raise ValueError(f"{cluster.name} has no storage classes")
    _refuse_others(cloud, [*kinds, "cloud"] if cloud is Cloud.AZURE else kinds, parameters)
    classes = [_class(cluster, kind, parameters[kind]) for kind in kinds]
    config = [_azure_config(parameters["cloud"])] if cloud is Cloud.AZURE else []
    return json.dumps([applied(thing) for thing in (*config, *classes)], separators=(",", ":"), sort_keys=True) + "\n"


def _refuse_others(cloud: Cloud, kinds: list[str], parameters: Parameters) -> None:
    for kind in {*kinds, *parameters}:
        needed = _NEEDED[cloud, kind] if kind in kinds else frozenset()
        given = frozenset(parameters.get(kind, ()))
        if missing := sorted(needed - given):
            raise ValueError(f"{cloud}, {kind}: {', '.join(missing)} missing")
        if unknown := sorted(given - needed - _OPTIONAL.get((cloud, kind), frozenset())):
            raise ValueError(f"{cloud}, {kind}: unknown parameters {', '.join(unknown)}")


def _class(cluster: Cluster, kind: str, given: Mapping[str, str]) -> Object:
    cloud, is_block = cluster.spec.control_plane.cloud, kind == "block"
    default = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}} if is_block else {}
    own = (_BLOCK if is_block else _FILE)[cloud](cluster)
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": kind, **default},
        "provisioner": (BLOCK if is_block else FILE)[cloud].name,
        "parameters": {**own, **given},
        "reclaimPolicy": "Retain" if cluster.spec.storage.retain else "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": is_block or _EXPANDS[cloud],
        **({"mountOptions": ["noresvport"]} if cloud is Cloud.AZURE and not is_block else {}),
    }


def _ebs(cluster: Cluster) -> dict[str, str]:
    kind = block_disk(cluster.spec)
    # The most that io1 allows per GiB; small volumes get the smallest possible number ("Amazon EBS volume types").
    iops = {"iopsPerGB": "50", "allowAutoIOPSPerGBIncrease": "true"} if kind in _NEEDS_IOPS else {}
    return {"type": kind, "encrypted": "true", "csi.storage.k8s.io/fstype": "ext4", **iops}


def _efs(cluster: Cluster) -> dict[str, str]:
    return {"provisioningMode": "efs-ap", "directoryPerms": "700", "basePath": "/volumes"}


def _azure_disk(cluster: Cluster) -> dict[str, str]:
    kind = block_disk(cluster.spec)
    return {
        "skuName": AZURE_SKUS.get(kind, kind),
        "cachingMode": "None" if kind in _UNCACHED else "ReadOnly",
        "networkAccessPolicy": "DenyAll",
        "publicNetworkAccess": "Disabled",
        "csi.storage.k8s.io/fstype": "ext4",
        "tags": f"menagerie=true,cluster={cluster.name}",
    }


def _azure_file(cluster: Cluster) -> dict[str, str]:
    # With `privateEndpoint` and an existing account, the driver creates no endpoint and mounts by the private name.
    # Without it, the driver would open subnets to the service.
    return {
        "protocol": "nfs",
        "skuName": "Premium_ZRS",
        "networkEndpointType": "privateEndpoint",
        "rootSquashType": "NoRootSquash",
    }


def _persistent_disk(cluster: Cluster) -> dict[str, str]:
    return {"type": block_disk(cluster.spec), "csi.storage.k8s.io/fstype": "ext4"}


def _filestore(cluster: Cluster) -> dict[str, str]:
    # The cheapest tier that supports a customer's key (Filestore, "Customer-managed encryption keys").
    return {"tier": "zonal"}


_Own = Callable[[Cluster], dict[str, str]]
_BLOCK: dict[Cloud, _Own] = {Cloud.AWS: _ebs, Cloud.AZURE: _azure_disk, Cloud.GCP: _persistent_disk}
_FILE: dict[Cloud, _Own] = {Cloud.AWS: _efs, Cloud.AZURE: _azure_file, Cloud.GCP: _filestore}


def _azure_config(given: Mapping[str, str]) -> Object:
    config = {
        "cloud": "AzurePublicCloud",
        "vmType": "vmss",
        "disableAvailabilitySetNodes": True,
        "useInstanceMetadata": True,
        "useManagedIdentityExtension": True,
        **given,
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CLOUD_CONFIG, "namespace": NAMESPACE},
        "data": {"azure.json": json.dumps(config, indent=1, sort_keys=True) + "\n"},
    }
