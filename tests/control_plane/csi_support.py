"""Clusters of the three clouds with every kind of volume, and the values that their stacks would give."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from cluster.spec import Cloud, Cluster, ClusterSpec
from components.control_plane import csi, manifests
from components.control_plane.objects import path
from network.addresses import plan
from tests.digests import with_digests

EXAMPLES = Path(__file__).parents[2] / "examples"
CLOUDS = (Cloud.AWS, Cloud.AZURE, Cloud.GCP)
_ID = "11111111-2222-3333-4444-555555555555"
_PROJECT = "projects/research-kubernetes"
_GROUP = f"/subscriptions/{_ID}/resourceGroups/narwhal"
PARAMETERS: dict[Cloud, dict[str, dict[str, str]]] = {
    Cloud.AWS: {
        "block": {"kmsKeyId": f"arn:aws:kms:us-east-1:123456789012:key/{_ID}"},
        "file": {"fileSystemId": "fs-0123456789abcdef0"},
    },
    Cloud.AZURE: {
        "block": {
            "diskEncryptionSetID": f"{_GROUP}/providers/Microsoft.Compute/diskEncryptionSets/narwhal",
            "resourceGroup": "narwhal-workers",
        },
        "file": {"storageAccount": "narwhalfiles", "resourceGroup": "narwhal"},
        "cloud": {
            "tenantId": _ID,
            "subscriptionId": _ID,
            "resourceGroup": "narwhal-workers",
            "location": "eastus2",
            "userAssignedIdentityID": _ID,
        },
    },
    Cloud.GCP: {
        "block": {"disk-encryption-kms-key": f"{_PROJECT}/locations/us-east1/keyRings/r/cryptoKeys/k"},
        "file": {
            "network": f"{_PROJECT}/global/networks/narwhal",
            "instance-encryption-kms-key": f"{_PROJECT}/locations/us-east1/keyRings/r/cryptoKeys/k",
            "reserved-ipv4-cidr": "10.79.3.0/24",
        },
    },
}


def cluster(cloud: Cloud, storage: Mapping[str, Any] | None = None, **changes: Any) -> Cluster:
    """Return the small cluster of a cloud, with drivers of both kinds unless `storage` says otherwise."""
    spec = yaml.safe_load((EXAMPLES / f"{cloud}-small" / "cluster.yaml").read_text())
    kinds = {"file": True} if storage is None else storage
    return Cluster(spec=with_digests(ClusterSpec.model_validate({**spec, "storage": kinds, **changes})))


def applied(cloud: Cloud, storage: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """Return everything that cluster-bootstrap applies for volumes, in order."""
    small = cluster(cloud, storage)
    kinds = {kind: given for kind, given in PARAMETERS[cloud].items() if small.spec.storage.file or kind != "file"}
    ours = {path(thing) for thing in csi.objects(small)}
    items = [item for item in json.loads(manifests.render(small, plan(small))) if item["path"] in ours]
    return [*items, *json.loads(csi.storage_classes(small, kinds))]
