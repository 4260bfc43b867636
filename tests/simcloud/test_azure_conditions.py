"""What Azure refuses because of other resources, and accepts after they have changed."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.simcloud.identifiers import guid
from sandbox.simcloud.rules import Offers, RefusalError
from sandbox.simcloud.simulation import SimulatedCloud
from tests.simcloud.azure_places import AS_HOST, DATA_DISK, ENCRYPTION, HOST, NET, NODES, ROLE, VAULT
from tests.simcloud.azure_support import Estate


@pytest.fixture
def estate(api: Any) -> Estate:
    return Estate(api("azure"))


def _spare_key(estate: Estate, vault: dict[str, Any], key: dict[str, Any] | None = None) -> dict[str, Any]:
    """Create a second vault with a key; return the inputs that make an encryption set use it."""
    estate.twin("vault", "apes-spare", **vault)
    record = estate.twin("key", "disks", vaultName="apes-spare", **(key or {}))
    return {"activeKey": {"keyUrl": record.outputs["keyUriWithVersion"]}}


@pytest.mark.parametrize(
    ("vault", "key", "match"),
    [
        ({"properties.enablePurgeProtection": None}, {}, "apes-spare must have purge protection"),
        ({}, {"properties": {"kty": "EC", "curveName": "P-256"}}, "is not an RSA key of 2048, 3072 or 4096 bits"),
        ({"location": "eastus"}, {}, "apes-spare is in eastus, and .* in westeurope"),
    ],
    ids=["its vault can be purged", "it is on a curve", "it is elsewhere"],
)
def test_a_key_cannot_encrypt_disks_if(estate: Estate, vault: dict[str, Any], key: dict[str, Any], match: str) -> None:
    active = _spare_key(estate, vault, key)
    with pytest.raises(RefusalError, match=match):
        estate.twin("encryption", "second", **active)


def test_an_encryption_set_s_identity_may_use_the_key_by_a_role_or_by_the_vault_s_policies(estate: Estate) -> None:
    by_role = estate.twin("encryption", "by-role", identity=AS_HOST)
    assert by_role.outputs["identity"]["userAssignedIdentities"][HOST]["principalId"] == guid(f"{HOST} principal")
    estate.without("host's role")
    with pytest.raises(RefusalError, match="KeyVaultAccessForbidden"):
        estate.twin("encryption", "second", identity=AS_HOST)
    policies = [{"objectId": guid(f"{HOST} principal"), "tenantId": "", "permissions": {}}]
    active = _spare_key(estate, {"properties.enableRbacAuthorization": False, "properties.accessPolicies": policies})
    assert (
        estate.twin("encryption", "by-policy", identity=AS_HOST, **active).outputs["provisioningState"] == "Succeeded"
    )


def test_a_disk_needs_an_encryption_set_that_may_use_the_key(estate: Estate) -> None:
    estate.without("encryption's role")
    with pytest.raises(RefusalError, match="KeyVaultAccessForbidden.*disk encryption set '.*/disks'"):
        estate.twin("disk", "etcd-2")
    with pytest.raises(RefusalError, match="KeyVaultAccessForbidden"):
        estate.twin("machine", "etcd-2", **{"networkProfile": {}, "storageProfile.dataDisks": []})


def test_premium_v2_disks_accept_no_encryption_set_with_a_user_assigned_identity(estate: Estate) -> None:
    chosen = {"encryption.diskEncryptionSetId": estate.twin("encryption", "by-role", identity=AS_HOST).id}
    with pytest.raises(RefusalError, match="DirectDriveDiskNotSupportUserAssignedIdentityDes"):
        estate.twin("disk", "etcd-2", **chosen)
    premium = {"sku.name": "Premium_LRS", "diskIOPSReadWrite": None, "diskMBpsReadWrite": None}
    assert estate.twin("disk", "etcd-2", **chosen, **premium).id == f"{DATA_DISK[:-1]}2"


def test_an_ultra_disk_needs_a_machine_with_ultra_ssd_enabled(estate: Estate) -> None:
    disk = estate.twin("disk", "ultra", **{"sku.name": "UltraSSD_LRS"})
    other = {"networkProfile": {}, "storageProfile.dataDisks[0].managedDisk.id": disk.id}
    with pytest.raises(RefusalError, match=r"UltraSSD_LRS.*additionalCapabilities\.ultraSSDEnabled"):
        estate.twin("machine", "etcd-2", **other)
    assert estate.twin("machine", "etcd-2", **other, additionalCapabilities={"ultraSSDEnabled": True})


def test_an_account_needs_a_purge_protected_key_that_its_identity_may_use(estate: Estate) -> None:
    _spare_key(estate, {"properties.enablePurgeProtection": None})
    with pytest.raises(RefusalError, match="KeyVaultPolicyError"):
        estate.update("account", {"encryption.keyVaultProperties.keyVaultUri": "https://apes-spare.vault.azure.net"})
    estate.without("host's role")
    with pytest.raises(
        RefusalError, match="KeyVaultAuthenticationFailure.*authentication issue on the keyvault.*may not use key disks"
    ):
        estate.twin("account", "apesbackups2")


@pytest.mark.parametrize(
    ("permissions", "is_enough"),
    [
        ([{"dataActions": ["Microsoft.KeyVault/vaults/keys/*"]}], True),
        ([{"dataActions": ["microsoft.keyvault/vaults/keys/read"]}, {"dataActions": ["*/wrap/action", "*/unwrap/action"]}], True),
        ([{"dataActions": ["Microsoft.KeyVault/vaults/keys/read", "Microsoft.KeyVault/vaults/keys/wrap/action"]}], False),
        ([{"dataActions": ["*"], "notDataActions": ["Microsoft.KeyVault/vaults/keys/unwrap/action"]}], False),
        ([{"actions": ["Microsoft.KeyVault/vaults/keys/*"]}], False),
    ],
    ids=["all of keys", "in two parts", "without unwrap", "except unwrap", "not of data"],
)  # fmt: skip
def test_a_role_must_have_the_data_actions_that_encryption_needs(
    estate: Estate, permissions: list[dict[str, Any]], is_enough: bool
) -> None:
    estate.without("host's role")
    own = estate.twin("own role", guid("encrypts"), roleName="encrypts", permissions=permissions)
    role = f"{ROLE.rpartition('/')[0]}/{own.inputs['roleDefinitionId']}"
    estate.twin("host's role", guid("by own role"), roleDefinitionId=role)
    if is_enough:
        estate.twin("account", "apesbackups2")
        return
    with pytest.raises(RefusalError, match="KeyVaultAuthenticationFailure"):
        estate.twin("account", "apesbackups2")


def test_a_built_in_role_without_rights_on_keys_encrypts_nothing(estate: Estate) -> None:
    estate.without("host's role")
    secrets_user = "4633458b-17de-408a-b874-0445c86b69e6"
    estate.twin("host's role", guid("reads secrets"), roleDefinitionId=f"{ROLE.rpartition('/')[0]}/{secrets_user}")
    with pytest.raises(RefusalError, match="KeyVaultAuthenticationFailure"):
        estate.twin("account", "apesbackups2")


def test_a_new_role_assignment_works_after_some_uses_in_vain(estate: Estate) -> None:
    azure = estate.api
    azure.simulation = SimulatedCloud(azure.simulation.cloud, azure.world, Offers(slow_grants=2))
    estate.twin("disk", "etcd-2")  # by the assignment that was used before
    estate.without("encryption's role")
    estate.create_again("encryption's role")
    for _ in range(2):
        with pytest.raises(RefusalError, match="KeyVaultAccessForbidden"):
            estate.twin("disk", "etcd-3")
    estate.twin("disk", "etcd-3")


def test_a_container_with_versions_needs_an_account_with_versions(estate: Estate) -> None:
    estate.without("blobs")
    with pytest.raises(RefusalError, match="wants version-level immutability, and its account has no versions"):
        estate.twin("container", "second")


def test_a_deleted_vault_keeps_its_name_and_can_be_recovered(estate: Estate) -> None:
    estate.without("lock", "zone group", "endpoint")
    estate.api.delete(estate["vault"])
    with pytest.raises(RefusalError, match="ConflictError.*already exists in deleted state.*az keyvault purge"):
        estate.twin("vault", "apes-vault")
    assert estate.twin("vault", "apes-vault", **{"properties.createMode": "recover"}).id == VAULT
    assert estate.twin("vault", "apes-vault-2").id == f"{VAULT}-2"


@pytest.mark.parametrize("key", ["secret", "key"])
def test_a_deleted_secret_or_key_keeps_its_name(estate: Estate, key: str) -> None:
    estate.api.delete(estate[key])
    with pytest.raises(
        RefusalError, match="currently in a deleted but recoverable state, and its name cannot be reused"
    ):
        estate.create_again(key)
    assert estate.twin(key, "other").id.endswith("/other")


def test_an_existing_key_is_returned_unchanged(estate: Estate) -> None:
    changed = estate.update("key", {"properties.keySize": 4096})
    assert changed.outputs["keySize"] == 3072
    assert changed.outputs["keyUriWithVersion"] == estate["key"].outputs["keyUriWithVersion"]


def test_a_gateway_needs_a_large_enough_subnet(estate: Estate) -> None:
    estate.without("connection", "gateway", "gateway subnet")
    estate.twin("gateway subnet", "GatewaySubnet", addressPrefix="10.0.255.0/28")
    with pytest.raises(RefusalError, match=r"GatewaySubnet 10.0.255.0/28 is too small .* /27 or wider"):
        estate.twin("gateway", "gateway")


def test_a_connection_with_bgp_needs_bgp_at_both_ends_and_two_asns(estate: Estate) -> None:
    with pytest.raises(RefusalError, match="has BGP, but one of its ends does not"):
        estate.twin(
            "site", "static", **{"bgpSettings": None, "localNetworkAddressSpace.addressPrefixes": ["10.9.0.0/16"]}
        )
        estate.recreate("connection", {"localNetworkGateway2.id": f"{NET}/localNetworkGateways/static"})
    estate.update("gateway", {"bgpSettings.asn": 64600})
    with pytest.raises(RefusalError, match="Both ends of connection .* have ASN 64600"):
        estate.create_again("connection")


def test_a_network_has_one_zone_for_registration(estate: Estate) -> None:
    estate.twin("zone", "apes.internal")
    estate.update("link", {"registrationEnabled": True})
    with pytest.raises(RefusalError, match="has a zone for registration already"):
        estate.twin("link", "second", privateZoneName="apes.internal", registrationEnabled=True)
    assert (
        estate.twin("link", "second", privateZoneName="apes.internal").outputs["virtualNetworkLinkState"] == "Completed"
    )


def test_a_subnet_has_only_the_addresses_that_azure_does_not_reserve(estate: Estate) -> None:
    subnet = estate.twin("subnet", "small", addressPrefix="10.0.7.0/29").id
    dynamic = {"ipConfigurations": [{"name": "main", "subnet": {"id": subnet}}]}
    created = [estate.twin("interface", f"small-{i}", **dynamic) for i in range(3)]
    addresses = [interface.outputs["ipConfigurations"][0]["privateIPAddress"] for interface in created]
    assert addresses == ["10.0.7.4", "10.0.7.5", "10.0.7.6"]
    with pytest.raises(RefusalError, match="SubnetIsFull.*10.0.7.0/29"):
        estate.twin("interface", "small-3", **dynamic)


def test_an_address_is_free_after_its_holder_is_deleted(estate: Estate) -> None:
    estate.without("machine", "interface")
    static = [{"name": "main", "subnet": {"id": NODES}, "privateIPAddress": "10.0.1.10"}]
    assert estate.twin("interface", "other", ipConfigurations=static)


def test_accelerated_networking_needs_a_size_that_supports_it(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    from sandbox.simcloud.azure import machines

    size = machines.known_size("Standard_D4s_v5")
    assert size is not None and size.series is not None
    without = size._replace(series=size.series.model_copy(update={"accelerated_networking": False}))
    monkeypatch.setattr(machines, "known_size", lambda _: without)
    for key, changes in (("scale set", {"sku.capacity": 4}), ("machine", {"tags": {"a": "b"}})):
        with pytest.raises(RefusalError, match="VMSizeIsNotPermittedToEnableAcceleratedNetworking"):
            estate.update(key, changes)


def test_a_scale_set_may_have_a_health_extension_instead_of_a_probe(estate: Estate) -> None:
    extension = {"extensions": [{"name": "health", "type": "ApplicationHealthLinux"}]}
    changes = {
        "virtualMachineProfile.networkProfile.healthProbe": None,
        "virtualMachineProfile.extensionProfile": extension,
    }
    assert estate.update("scale set", changes)


def test_users_and_groups_are_assumed_to_exist(estate: Estate) -> None:
    role = {"principalId": guid("a group"), "principalType": "Group"}
    assert estate.twin("host's role", guid("group"), **role).outputs["principalType"] == "Group"


def test_a_role_assignment_without_a_name_gets_a_guid(estate: Estate) -> None:
    assignment = estate.twin("host's role", None, scope=ENCRYPTION)
    assert len(assignment.outputs["name"]) == 36
