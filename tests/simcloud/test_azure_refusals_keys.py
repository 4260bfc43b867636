"""What Azure refuses of identities, vaults and disks: the estate with one property changed."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.simcloud.azure.common import TENANT
from sandbox.simcloud.identifiers import guid
from sandbox.simcloud.rules import RefusalError
from tests.simcloud.azure_places import HOST, KEY_URI, ROLE
from tests.simcloud.azure_support import Estate

CHANGES: list[tuple[str, str, dict[str, Any], str]] = [
    # Identities.
    (
        "a machine's identity exists",
        "machine",
        {"identity.userAssignedIdentities[0]": f"{HOST}-2"},
        "InvalidResourceReference.*userAssignedIdentities/host-2",
    ),
    (
        "user assigned identities need the type",
        "machine",
        {"identity.type": "SystemAssigned"},
        "InvalidIdentityType.*1 user assigned identities",
    ),
    (
        "the type needs user assigned identities",
        "machine",
        {"identity.userAssignedIdentities": []},
        "MissingIdentityIds.*0 user assigned identities",
    ),
    (
        "a custom role is assignable at its own scope",
        "own role",
        {"assignableScopes": [f"{ROLE.partition('/providers/')[0]}/resourceGroups/others"]},
        "InvalidRoleDefinitionScope.*resourcegroups/others",
    ),
    ("a custom role permits something", "own role", {"permissions": []}, "permits nothing"),
    ("a custom role has a name", "own role", {"roleName": None}, "has no name"),
    (
        "a role is given by its full ID",
        "host's role",
        {"roleDefinitionId": "Key Vault Secrets User"},
        "RoleDefinitionDoesNotExist",
    ),
    (
        "a role assignment's role cannot change",
        "host's role",
        {"roleDefinitionId": f"{ROLE[:-1]}7"},
        "RoleAssignmentUpdateNotPermitted",
    ),
    ("a lock has a level", "lock", {"level": "Soft"}, "has the level Soft.*CanNotDelete, ReadOnly"),
    # Key vaults.
    (
        "purge protection cannot be turned off",
        "vault",
        {"properties.enablePurgeProtection": False},
        "enablePurgeProtection.* cannot be set to false",
    ),
    (
        "purge protection cannot be unset",
        "vault",
        {"properties.enablePurgeProtection": None},
        "cannot be unset once it is true",
    ),
    ("soft delete cannot be turned off", "vault", {"properties.enableSoftDelete": False}, "enableSoftDelete.* false"),
    ("the retention cannot change", "vault", {"properties.softDeleteRetentionInDays": 31}, "can't be modified"),
    ("the retention is at least 7 days", "vault", {"properties.softDeleteRetentionInDays": 6}, "7 to 90 days"),
    (
        "a vault's tenant is the client's",
        "vault",
        {"properties.tenantId": guid("other")},
        f"'tenantId'.*it is {TENANT}",
    ),
    (
        "a secret of 25 KiB and a byte is refused",
        "secret",
        {"properties.value": "x" * 25601},
        "25601 bytes.*25600 at most",
    ),
    ("a key has a valid kind", "key", {"properties.kty": "AES"}, "kty AES; one of RSA"),
    ("an RSA key has a valid size", "key", {"properties.keySize": 1024}, "keySize 1024; one of 2048, 3072"),
    (
        "a key in hardware is in a premium vault",
        "key",
        {"properties.kty": "RSA-HSM"},
        "needs a vault of the SKU premium",
    ),
    ("a curve is valid", "key", {"properties": {"kty": "EC", "curveName": "P-1"}}, "curveName P-1"),
    # Disks.
    ("a Premium v2 disk is in a zone", "disk", {"zones": None}, "must be in an availability zone"),
    ("a disk is in one zone only", "disk", {"zones": ["1", "2"]}, "it can be in one"),
    ("a disk's zone is one of the region's", "disk", {"zones": ["4"]}, "InvalidAvailabilityZone.*'4'"),
    ("a disk's SKU exists", "disk", {"sku.name": "Premium_SSD"}, "InvalidAccountType.*Premium_SSD"),
    ("IOPS are limited by the size", "disk", {"diskIOPSReadWrite": 32001}, "32001 .*3000 to 32000 with 64 GiB"),
    (
        "IOPS have a maximum",
        "disk",
        {"diskSizeGB": 4096, "diskIOPSReadWrite": 80001},
        "80001 .*3000 to 80000 with 4096 GiB",
    ),
    ("throughput is limited by IOPS", "disk", {"diskMBpsReadWrite": 1251}, "1251 .*125 to 1250 with 5000"),
    ("a disk has a maximum size", "disk", {"diskSizeGB": 65537}, "65537 .*at most 65536"),
    (
        "IOPS of an older disk cannot be set",
        "disk",
        {"sku.name": "Premium_LRS"},
        "diskIOPSReadWrite .* can be set for the account types PremiumV2_LRS and UltraSSD_LRS only",
    ),
    (
        "an encryption set's key exists",
        "encryption",
        {"activeKey.keyUrl": "https://apes-vault.vault.azure.net/keys/none/0"},
        "KeyVaultKeyNotFound",
    ),
    ("an encryption set's key has a version", "encryption", {"activeKey.keyUrl": KEY_URI}, "it has no version"),
    (
        "an encryption set's identity needs permission for the key",
        "encryption",
        {"identity": {"type": "UserAssigned", "userAssignedIdentities": [f"{HOST}-new"]}},
        "KeyVaultAccessForbidden.*grant get, wrap and unwrap",
    ),
]


@pytest.fixture
def estate(api: Any) -> Estate:
    return Estate(api("azure"))


@pytest.mark.parametrize(("key", "changes", "match"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_azure_refuses_invalid_keys_and_disks(estate: Estate, key: str, changes: dict[str, Any], match: str) -> None:
    estate.twin("identity", "host-new")
    with pytest.raises(RefusalError, match=match):
        estate.retry(key, changes)
