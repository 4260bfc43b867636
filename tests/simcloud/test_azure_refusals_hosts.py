"""What Azure refuses of machines, scale sets and storage: the estate with one property changed."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from sandbox.simcloud.rules import RefusalError
from tests.simcloud.azure_places import DATA_DISK, ENCRYPTION, INTERFACE, PROXIMITY, STORE, own
from tests.simcloud.azure_support import RECREATED, Estate

CHANGES: list[tuple[str, str, dict[str, Any], str]] = [
    # Machines.
    (
        "custom data has at most 87380 characters",
        "machine",
        {"osProfile.customData": b64encode(b"x" * 65536).decode()},
        "InvalidParameter.*Base64 encoding and with a maximum length of 87380 characters.*has 87384",
    ),
    ("custom data is in base64", "machine", {"osProfile.customData": "#cloud-config"}, "is not in Base64"),
    (
        "a scale set's custom data has the same limit",
        "scale set",
        {"virtualMachineProfile.osProfile.customData": b64encode(b"x" * 65536).decode()},
        "maximum length of 87380",
    ),
    (
        "user data is in base64 too",
        "machine",
        {"userData": "#"},
        "userData is not in Base64",
    ),
    (
        "a machine has a key although nobody logs in",
        "machine",
        {"osProfile.linuxConfiguration.ssh": None},
        "Authentication using either SSH or by user name and password must be enabled",
    ),
    (
        "an administrator is not root",
        "machine",
        {"osProfile.adminUsername": "root"},
        "Username specified is not allowed",
    ),
    ("a machine is in one zone", "machine", {"zones": ["1", "2"]}, "it can be in one"),
    (
        "two disks have two numbers",
        "machine",
        {"storageProfile.dataDisks[1]": {"lun": 0, "createOption": "Empty"}},
        "A disk at LUN 0 already exists",
    ),
    (
        "a size limits the number of disks",
        "machine",
        {"storageProfile.dataDisks": [{"lun": i, "createOption": "Empty"} for i in range(9)]},
        "maximum number of data disks allowed to be attached to a VM of this size is 8.*there are 9",
    ),
    (
        "a size limits the number of interfaces",
        "machine",
        {
            "hardwareProfile.vmSize": "Standard_D2s_v5",
            "networkProfile.networkInterfaces": [{"id": INTERFACE, "primary": i == 0} for i in range(3)],
        },
        "number of network interfaces is 3 and the maximum allowed is 2",
    ),
    (
        "one of two interfaces is primary",
        "machine",
        {"networkProfile.networkInterfaces": [{"id": INTERFACE}, {"id": INTERFACE}]},
        "VirtualMachineMustHaveOneNetworkInterfaceAsPrimary.*0 of 2",
    ),
    (
        "an OS disk is not Premium v2",
        "machine",
        {"storageProfile.osDisk.managedDisk.storageAccountType": "PremiumV2_LRS"},
        "PremiumV2_LRS cannot be used for an OS disk",
    ),
    (
        "a Premium v2 disk is not cached",
        "machine",
        {"storageProfile.dataDisks[0].caching": "ReadOnly"},
        "supports the caching None only",
    ),
    ("eviction is for spot machines", "machine", {"evictionPolicy": "Delete"}, "evictionPolicy .* priority Spot"),
    (
        "secure boot is for trusted launch",
        "machine",
        {"securityProfile.securityType": None},
        "UEFI settings is not supported for virtual machines with security type 'Standard'",
    ),
    (
        "a machine's disk exists",
        "machine",
        {"storageProfile.dataDisks[0].managedDisk.id": f"{DATA_DISK}-2"},
        "InvalidResourceReference.*disks/etcd-1-2",
    ),
    (
        "a machine's interface exists",
        "machine",
        {"networkProfile.networkInterfaces[0].id": f"{INTERFACE}-2"},
        "InvalidResourceReference.*networkInterfaces/etcd-1-2",
    ),
    (
        "a machine's encryption set exists",
        "machine",
        {"storageProfile.osDisk.managedDisk.diskEncryptionSet.id": f"{ENCRYPTION}-2"},
        "InvalidResourceReference.*diskEncryptionSets/disks-2",
    ),
    # Scale sets.
    (
        "rolling upgrades need a probe",
        "scale set",
        {"virtualMachineProfile.networkProfile.healthProbe": None},
        "Rolling Upgrade mode is not supported .* because a health probe or health extension was not provided",
    ),
    (
        "automatic repairs need a probe",
        "scale set",
        {"upgradePolicy.mode": "Manual", "virtualMachineProfile.networkProfile.healthProbe": None},
        "Automatic repairs not supported .* because a health probe",
    ),
    (
        "a probe of a pool that the set is not in is refused",
        "scale set",
        {
            "virtualMachineProfile.networkProfile.networkInterfaceConfigurations[0].ipConfigurations[0]"
            ".loadBalancerBackendAddressPools": [own("backendAddressPools/idle")]
        },
        "CannotUseInactiveHealthProbe",
    ),
    (
        "a scale set's probe exists",
        "scale set",
        {"virtualMachineProfile.networkProfile.healthProbe": own("probes/none")},
        "InvalidResourceReference.*probes/none",
    ),
    ("a scale set has an upgrade policy", "scale set", {"upgradePolicy": None}, "'upgradePolicy' is missing"),
    (
        "a batch has at least 5% of the machines",
        "scale set",
        {"upgradePolicy.rollingUpgradePolicy.maxBatchInstancePercent": 4},
        "maxBatchInstancePercent is out of range.*5 to 100",
    ),
    (
        "a whole batch may be unhealthy",
        "scale set",
        {"upgradePolicy.rollingUpgradePolicy.maxBatchInstancePercent": 40},
        "maxUnhealthyInstancePercent must be at least maxBatchInstancePercent",
    ),
    (
        "one placement group has at most 100 machines",
        "scale set",
        {"singlePlacementGroup": True, "sku.capacity": 101},
        "machines 101 exceeds the limit 100.*singlePlacementGroup to false",
    ),
    (
        "a scale set has at most 1000 machines",
        "scale set",
        {"sku.capacity": 1001},
        "machines 1001 exceeds the limit 1000",
    ),
    ("a scale set's zones stay", "scale set", {"zones": ["2", "3"]}, "zones cannot be removed.*the update removes 1"),
    (
        "a scale set has one primary interface",
        "scale set",
        {"virtualMachineProfile.networkProfile.networkInterfaceConfigurations[0].primary": False},
        "VirtualMachineMustHaveOneNetworkInterfaceAsPrimary.*0 of 1",
    ),
    (
        "a proximity placement group is in one zone",
        "scale set",
        {"proximityPlacementGroup": {"id": PROXIMITY}},
        "in zones 1, 2 and in a proximity placement group",
    ),
    (
        "a placement group's zone needs sizes",
        "proximity",
        {"intent": None, "zones": ["1"]},
        "has a zone and no intent.vmSizes",
    ),
    (
        "a placement group is in one zone",
        "proximity",
        {"intent": {"vmSizes": ["Standard_D4s_v5"]}, "zones": ["1", "2"]},
        "it can be in one",
    ),
    # Storage.
    (
        "the encrypting identity is one of the account's",
        "account",
        {"identity": {"type": "SystemAssigned"}},
        "encrypts .* and is not one of its identities",
    ),
    (
        "an account's vault exists",
        "account",
        {"encryption.keyVaultProperties.keyVaultUri": "https://none.vault.azure.net"},
        "KeyVaultNotFound",
    ),
    (
        "a container's account exists",
        "container",
        {"accountName": "apeslogs"},
        "InvalidResourceReference.*storageAccounts/apeslogs",
    ),
    ("a container is not public", "container", {"publicAccess": "Blob"}, "PublicAccessNotPermitted"),
    (
        "restore needs versions",
        "blobs",
        {"isVersioningEnabled": False},
        "Point-in-time restore needs versions",
    ),
    (
        "deleted blobs are kept for longer than the restore period",
        "blobs",
        {"restorePolicy.days": 30},
        "Point-in-time restore needs",
    ),
    (
        "deleted blobs are kept for at most a year",
        "blobs",
        {"deleteRetentionPolicy.days": 366},
        "deleteRetentionPolicy.days is 366.*1 to 365",
    ),
    (
        "rules of a lifecycle have unique names",
        "lifecycle",
        {"policy.rules[1]": {"name": "old", "type": "Lifecycle"}},
        "management policy has old",
    ),
    (
        "a container is immutable for at most 146000 days",
        "immutability",
        {"immutabilityPeriodSinceCreationInDays": 146001},
        "146001.*1 to 146000",
    ),
    (
        "the two append settings exclude each other",
        "immutability",
        {"allowProtectedAppendWrites": True, "allowProtectedAppendWritesAll": True},
        "exclude each other",
    ),
    # Flow logs.
    (
        "a flow log's account exists",
        "flow log",
        {"storageId": f"{STORE}2"},
        "InvalidResourceReference.*apesbackups2",
    ),
]


@pytest.fixture
def estate(api: Any) -> Estate:
    return Estate(api("azure"))


@pytest.mark.parametrize(("key", "changes", "match"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_azure_refuses_invalid_hosts_and_storage(estate: Estate, key: str, changes: dict[str, Any], match: str) -> None:
    with pytest.raises(RefusalError, match=match):
        estate.retry(key, changes)


@pytest.mark.parametrize("key", sorted(RECREATED))
def test_a_valid_resource_can_be_recreated(estate: Estate, key: str) -> None:
    assert estate.recreate(key, {}).id == estate[key].id


def test_a_disk_does_not_shrink(estate: Estate) -> None:
    with pytest.raises(
        RefusalError, match="ResizeDiskError.*Current size is 68719476736 bytes, requested size is 343597"
    ):
        estate.update("disk", {"diskSizeGB": 32})
    assert estate.update("disk", {"diskSizeGB": 128}).outputs["diskSizeBytes"] == 128 << 30
