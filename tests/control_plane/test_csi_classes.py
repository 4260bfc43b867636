"""StorageClasses, with values that only the stack knows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cluster.spec import Cloud
from components.control_plane.csi import storage_classes
from components.control_plane.csi.drivers import BLOCK, FILE
from tests.control_plane.csi_support import CLOUDS, PARAMETERS, cluster

DEFAULT = "storageclass.kubernetes.io/is-default-class"


def classes(cloud: Cloud, storage: dict[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    small = cluster(cloud, storage)
    kinds = {kind: given for kind, given in PARAMETERS[cloud].items() if small.spec.storage.file or kind != "file"}
    objects = [item["object"] for item in json.loads(storage_classes(small, kinds))]
    return {thing["metadata"]["name"]: thing for thing in objects}


@pytest.mark.parametrize("cloud", CLOUDS)
def test_block_is_the_default_and_both_wait_for_a_pod(cloud: Cloud) -> None:
    rendered = classes(cloud)
    assert rendered["block"]["metadata"]["annotations"] == {DEFAULT: "true"}
    assert "annotations" not in rendered["file"]["metadata"]
    assert (rendered["block"]["provisioner"], rendered["file"]["provisioner"]) == (BLOCK[cloud].name, FILE[cloud].name)
    assert {rendered[kind]["volumeBindingMode"] for kind in ("block", "file")} == {"WaitForFirstConsumer"}
    assert rendered["block"]["allowVolumeExpansion"] is True


@pytest.mark.parametrize("cloud", CLOUDS)
def test_there_is_a_class_only_for_each_driver(cloud: Cloud) -> None:
    assert {name for name in classes(cloud, {}) if name in ("block", "file")} == {"block"}


@pytest.mark.parametrize("cloud", CLOUDS)
def test_values_of_the_stack_are_in_the_class(cloud: Cloud) -> None:
    rendered = classes(cloud)
    for kind in ("block", "file"):
        assert rendered[kind]["parameters"].items() >= PARAMETERS[cloud][kind].items()


def test_disks_are_encrypted_with_the_customer_s_key() -> None:
    assert classes(Cloud.AWS)["block"]["parameters"]["encrypted"] == "true"
    keys = {Cloud.AWS: "kmsKeyId", Cloud.AZURE: "diskEncryptionSetID", Cloud.GCP: "disk-encryption-kms-key"}
    for cloud, key in keys.items():
        given = {kind: dict(values) for kind, values in PARAMETERS[cloud].items()}
        del given["block"][key]
        with pytest.raises(ValueError, match=f"{cloud}, block: {key} missing"):
            storage_classes(cluster(cloud), given)


@pytest.mark.parametrize(
    ("cloud", "disk", "parameter", "kind"),
    [
        (Cloud.AWS, None, "type", "gp3"),
        (Cloud.AWS, "io2", "type", "io2"),
        (Cloud.AZURE, None, "skuName", "Premium_LRS"),
        (Cloud.AZURE, "premium_ssd_v2", "skuName", "PremiumV2_LRS"),
        (Cloud.GCP, None, "type", "pd-balanced"),
        (Cloud.GCP, "hyperdisk-balanced", "type", "hyperdisk-balanced"),
    ],
)
def test_the_kind_of_disk_comes_from_the_spec(cloud: Cloud, disk: str | None, parameter: str, kind: str) -> None:
    storage = {"block_disk": disk} if disk else {}
    assert classes(cloud, storage)["block"]["parameters"][parameter] == kind


def test_disks_with_bought_iops_say_how_many() -> None:
    assert classes(Cloud.AWS, {"block_disk": "io2"})["block"]["parameters"]["iopsPerGB"] == "50"
    assert "iopsPerGB" not in classes(Cloud.AWS)["block"]["parameters"]


def test_disks_of_azure_are_closed_to_the_network_and_cached_if_possible() -> None:
    plain, second = (
        classes(Cloud.AZURE, storage)["block"]["parameters"] for storage in ({}, {"block_disk": "ultra_ssd"})
    )
    assert (plain["networkAccessPolicy"], plain["publicNetworkAccess"]) == ("DenyAll", "Disabled")
    assert (plain["cachingMode"], second["cachingMode"]) == ("ReadOnly", "None")


@pytest.mark.parametrize(("retain", "policy"), [(True, "Retain"), (False, "Delete")])
def test_a_volume_is_kept_or_deleted_with_its_claim_as_the_spec_says(retain: bool, policy: str) -> None:
    for thing in classes(Cloud.GCP, {"file": True, "retain": retain}).values():
        assert thing["reclaimPolicy"] == policy


def test_azures_drivers_find_their_cloud_without_a_secret() -> None:
    config = json.loads(classes(Cloud.AZURE)["azure-cloud"]["data"]["azure.json"])
    assert config.items() >= PARAMETERS[Cloud.AZURE]["cloud"].items()
    assert (config["useManagedIdentityExtension"], config["vmType"]) == (True, "vmss")
    assert not [key for key in config if "secret" in key.lower()]


def test_unknown_and_missing_parameters_are_refused() -> None:
    given = {**PARAMETERS[Cloud.AWS], "block": {"kmsKeyId": "arn", "type": "gp2"}}
    with pytest.raises(ValueError, match="aws, block: unknown parameters type"):
        storage_classes(cluster(Cloud.AWS), given)
    with pytest.raises(ValueError, match="aws, file: unknown parameters fileSystemId"):
        storage_classes(cluster(Cloud.AWS, {}), PARAMETERS[Cloud.AWS])
    with pytest.raises(ValueError, match="has no storage classes"):
        storage_classes(cluster(Cloud.AWS, {"block": False}), {})
