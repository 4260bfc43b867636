"""The storage account: closed, under the cluster's key, and its backups can't be taken back."""

from __future__ import annotations


def test_the_account_has_no_public_address_no_keys_and_the_cluster_s_encryption(account):
    (made,) = (each for each in account.of("storage:StorageAccount") if each["kind"] == "StorageV2")
    (vault,), (key,) = account.records("keyvault:Vault"), account.records("keyvault:Key")
    closed = ("allowBlobPublicAccess", "allowSharedKeyAccess", "allowCrossTenantReplication")
    assert [made[name] for name in closed] == [False, False, False]
    assert (made["publicNetworkAccess"], made["networkRuleSet"]["defaultAction"]) == ("Disabled", "Deny")
    assert (made["enableHttpsTrafficOnly"], made["minimumTlsVersion"]) == (True, "TLS1_2")
    used = made["encryption"]["keyVaultProperties"]
    assert made["encryption"]["keySource"] == "Microsoft.Keyvault"
    assert (used["keyName"], used["keyVaultUri"]) == (key.outputs["name"], vault.outputs["properties"]["vaultUri"])
    assert "keyVersion" not in used


def test_backups_are_versioned_immutable_and_deleted_ones_go_when_they_are_old(wide):
    account = wide
    (service,) = account.of("storage:BlobServiceProperties")
    containers = {each["containerName"]: each for each in account.of("storage:BlobContainer")}
    policies = {each["containerName"]: each for each in account.of("storage:BlobContainerImmutabilityPolicy")}
    (lifecycle,) = account.of("storage:ManagementPolicy")
    rules = {rule["name"]: rule["definition"] for rule in lifecycle["policy"]["rules"]}
    days = 2  # of 36 hours, whole days
    assert service["isVersioningEnabled"] is True
    assert set(containers) == {"backups", "audit-logs", "artefacts"}
    locked = {"backups": days, "audit-logs": 30}
    assert {name: each["immutabilityPeriodSinceCreationInDays"] for name, each in policies.items()} == locked
    assert all(containers[name]["immutableStorageWithVersioning"] == {"enabled": True} for name in locked)
    assert rules["audit-logs"]["actions"]["baseBlob"]["delete"] == {"daysAfterModificationGreaterThan": 30}
    assert {use: each["locked_days"] for use, each in account.outputs()["buckets"].items()} == {
        "records": 0, "audit-logs": 30, "backups": days,
    }  # fmt: skip
    actions = rules["backups"]["actions"]
    assert rules["backups"]["filters"]["prefixMatch"] == ["backups/"]
    assert "baseBlob" not in actions
    assert service["deleteRetentionPolicy"] == {"enabled": True, "days": 7}
    assert actions["version"]["delete"]["daysAfterCreationGreaterThan"] == days


def test_without_backups_there_is_no_container_for_any(koala):
    assert {each["containerName"] for each in koala.of("storage:BlobContainer")} == {"artefacts", "audit-logs"}
    assert [each["containerName"] for each in koala.of("storage:BlobContainerImmutabilityPolicy")] == ["audit-logs"]


def test_who_talked_to_whom_is_logged(account):
    (log,) = account.of("network:FlowLog")
    (network,) = account.records("network:VirtualNetwork")
    (storage,) = (each for each in account.records("storage:StorageAccount") if each.inputs["kind"] == "StorageV2")
    assert (log["targetResourceId"], log["storageId"], log["enabled"]) == (network.id, storage.id, True)
    assert log["retentionPolicy"] == {"enabled": True, "days": 30}
