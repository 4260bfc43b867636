"""The storage account: closed, encrypted with the cluster's key, with backups that can't be deleted early."""

from __future__ import annotations


def test_the_account_has_no_public_address_no_keys_and_the_clusters_encryption(account):
    (account_,) = (candidate for candidate in account.of("storage:StorageAccount") if candidate["kind"] == "StorageV2")
    (vault,), (key,) = account.records("keyvault:Vault"), account.records("keyvault:Key")
    closed = ("allowBlobPublicAccess", "allowSharedKeyAccess", "allowCrossTenantReplication")
    assert [account_[name] for name in closed] == [False, False, False]
    assert (account_["publicNetworkAccess"], account_["networkRuleSet"]["defaultAction"]) == ("Disabled", "Deny")
    assert (account_["enableHttpsTrafficOnly"], account_["minimumTlsVersion"]) == (True, "TLS1_2")
    used = account_["encryption"]["keyVaultProperties"]
    assert account_["encryption"]["keySource"] == "Microsoft.Keyvault"
    assert (used["keyName"], used["keyVaultUri"]) == (key.outputs["name"], vault.outputs["properties"]["vaultUri"])
    assert "keyVersion" not in used


def test_backups_are_versioned_and_immutable_and_old_deleted_ones_are_removed(wide):
    account = wide
    (service,) = account.of("storage:BlobServiceProperties")
    containers = {item["containerName"]: item for item in account.of("storage:BlobContainer")}
    policies = {item["containerName"]: item for item in account.of("storage:BlobContainerImmutabilityPolicy")}
    (lifecycle,) = account.of("storage:ManagementPolicy")
    rules = {rule["name"]: rule["definition"] for rule in lifecycle["policy"]["rules"]}
    days = 2  # of 36 hours, whole days
    assert service["isVersioningEnabled"] is True
    assert set(containers) == {"backups", "audit-logs", "artefacts"}
    locked = {"backups": days, "audit-logs": 30}
    assert {name: item["immutabilityPeriodSinceCreationInDays"] for name, item in policies.items()} == locked
    assert all(containers[name]["immutableStorageWithVersioning"] == {"enabled": True} for name in locked)
    assert rules["audit-logs"]["actions"]["baseBlob"]["delete"] == {"daysAfterModificationGreaterThan": 30}
    assert {use: item["locked_days"] for use, item in account.outputs()["buckets"].items()} == {
        "records": 0, "audit-logs": 30, "backups": days,
    }  # fmt: skip
    actions = rules["backups"]["actions"]
    assert rules["backups"]["filters"]["prefixMatch"] == ["backups/"]
    assert "baseBlob" not in actions
    assert service["deleteRetentionPolicy"] == {"enabled": True, "days": 7}
    assert actions["version"]["delete"]["daysAfterCreationGreaterThan"] == days


def test_without_backups_there_is_no_container_for_them(koala):
    assert {container["containerName"] for container in koala.of("storage:BlobContainer")} == {
        "artefacts",
        "audit-logs",
    }
    assert [container["containerName"] for container in koala.of("storage:BlobContainerImmutabilityPolicy")] == [
        "audit-logs"
    ]


def test_connections_are_logged(account):
    (log,) = account.of("network:FlowLog")
    (network,) = account.records("network:VirtualNetwork")
    (storage,) = (
        record for record in account.records("storage:StorageAccount") if record.inputs["kind"] == "StorageV2"
    )
    assert (log["targetResourceId"], log["storageId"], log["enabled"]) == (network.id, storage.id, True)
    assert log["retentionPolicy"] == {"enabled": True, "days": 30}
