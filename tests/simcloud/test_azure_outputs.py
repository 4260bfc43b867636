"""IDs, the outputs that Azure adds, and valid names."""

from __future__ import annotations

import re
from typing import Any

import pytest

from cluster import catalogue
from cluster.spec import Cloud
from sandbox.simcloud.azure import CLOUD
from sandbox.simcloud.azure.common import CLIENT, TENANT
from sandbox.simcloud.identifiers import guid
from sandbox.simcloud.rules import Naming, RefusalError
from sandbox.simcloud.values import Secret, at
from tests.simcloud.azure_places import (
    BALANCER,
    DATA_DISK,
    ENCRYPTION,
    GATEWAY,
    GROUP,
    HOST,
    KEY_URI,
    NET,
    STORE,
    SUBSCRIPTION,
    VAULT,
)
from tests.simcloud.azure_support import ESTATE, Estate, token

IDS = {
    "group": GROUP,
    "address": f"{NET}/publicIPAddresses/nat",
    "nat": f"{NET}/natGateways/nat",
    "routes": f"{NET}/routeTables/routes",
    "balancer": BALANCER,
    "endpoint": f"{NET}/privateEndpoints/vault",
    "zone group": f"{NET}/privateEndpoints/vault/privateDnsZoneGroups/default",
    "zone": f"{NET}/privateDnsZones/privatelink.vaultcore.azure.net",
    "link": f"{NET}/privateDnsZones/privatelink.vaultcore.azure.net/virtualNetworkLinks/network",
    "records": f"{NET}/privateDnsZones/privatelink.vaultcore.azure.net/A/api",
    "flow log": f"{SUBSCRIPTION}/resourceGroups/NetworkWatcherRG/providers/Microsoft.Network/networkWatchers/"
    "NetworkWatcher_westeurope/flowLogs/network",
    "gateway": GATEWAY,
    "connection": f"{NET}/connections/sjc-1",
    "identity": HOST,
    "vault": VAULT,
    "secret": f"{VAULT}/secrets/payload",
    "key": f"{VAULT}/keys/disks",
    "host's role": f"{VAULT}/providers/Microsoft.Authorization/roleAssignments/{guid('host')}",
    "lock": f"{DATA_DISK}/providers/Microsoft.Authorization/locks/keep",
    "encryption": ENCRYPTION,
    "disk": DATA_DISK,
    "account": STORE,
    "blobs": f"{STORE}/blobServices/default",
    "container": f"{STORE}/blobServices/default/containers/backups",
    "immutability": f"{STORE}/blobServices/default/containers/backups/immutabilityPolicies/default",
    "lifecycle": f"{STORE}/managementPolicies/default",
}

# Key -> path among the outputs -> value.
OUTPUTS: dict[str, dict[str, Any]] = {
    "identity": {
        "name": "host",
        "principalId": guid(f"{HOST} principal"),
        "clientId": guid(f"{HOST} client"),
        "tenantId": TENANT,
    },
    "vault": {"name": "apes-vault", "properties.vaultUri": "https://apes-vault.vault.azure.net/"},
    "secret": {"properties.secretUri": "https://apes-vault.vault.azure.net/secrets/payload"},
    "key": {"keyUri": KEY_URI, "keySize": 3072, "kty": "RSA"},
    "balancer": {
        "frontendIPConfigurations[].id": f"{BALANCER}/frontendIPConfigurations/api",
        "frontendIPConfigurations[].privateIPAddress": "10.0.1.4",
        "probes[].id": f"{BALANCER}/probes/api",
    },
    "machine": {
        "storageProfile.osDisk.deleteOption": "Detach",
    },
    "encryption": {"identity.principalId": guid(f"{ENCRYPTION} principal")},
    "endpoint": {
        "customDnsConfigs[].fqdn": "apes-vault.vault.azure.net",
        "customDnsConfigs[].ipAddresses[]": "10.0.1.5",
        "networkInterfaces[].id": f"{NET}/networkInterfaces/vault.nic.{guid(f'{NET}/privateEndpoints/vault')}",
    },
    "zone group": {
        "privateDnsZoneConfigs[].recordSets[].fqdn": "apes-vault.privatelink.vaultcore.azure.net",
        "privateDnsZoneConfigs[].recordSets[].ipAddresses[]": "10.0.1.5",
    },
    "records": {"fqdn": "api.privatelink.vaultcore.azure.net."},
    "account": {"primaryEndpoints.blob": "https://apesbackups.blob.core.windows.net/", "primaryLocation": "westeurope"},
    "gateway": {
        "bgpSettings.asn": 65515,
        "bgpSettings.bgpPeeringAddress": "10.0.255.4,10.0.255.5",
    },
    "disk": {"diskSizeBytes": 64 << 30},
}


@pytest.fixture
def estate(api: Any) -> Estate:
    return Estate(api("azure"))


@pytest.mark.parametrize("key", IDS)
def test_ids_are_well_formed(estate: Estate, key: str) -> None:
    assert estate[key].id == IDS[key]


@pytest.mark.parametrize(("key", "path"), [(key, path) for key, paths in OUTPUTS.items() for path in paths])
def test_azure_adds_the_outputs_that_others_read(estate: Estate, key: str, path: str) -> None:
    assert list(at(estate[key].outputs, path)) == [OUTPUTS[key][path]]


def test_a_machine_shows_the_principals_of_its_identities(estate: Estate) -> None:
    for key in ("machine", "scale set", "account"):
        identities = estate[key].outputs["identity"]["userAssignedIdentities"]
        assert identities == {HOST: {"clientId": guid(f"{HOST} client"), "principalId": guid(f"{HOST} principal")}}


def test_every_resource_shows_its_name(estate: Estate) -> None:
    assert {key: record.outputs["name"] for key, record in estate.records.items()} == {
        key: name for key, (_, _, name, _) in ESTATE.items()
    }


def test_a_gateway_s_ends_have_public_default_and_custom_addresses(estate: Estate) -> None:
    ends = estate["gateway"].outputs["bgpSettings"]["bgpPeeringAddresses"]
    addresses = [estate[f"gateway address {i}"].outputs["ipAddress"] for i in (1, 2)]
    assert [end["tunnelIpAddresses"] for end in ends] == [[address] for address in addresses]
    assert [end["customBgpIpAddresses"] for end in ends] == [["169.254.21.4"], ["169.254.21.8"]]
    assert [end["defaultBgpIpAddresses"] for end in ends] == [["10.0.255.4"], ["10.0.255.5"]]


def test_a_gateway_of_one_instance_has_the_last_but_one_address(estate: Estate) -> None:
    estate.without("connection")
    only = {"activeActive": False, "ipConfigurations": [estate["gateway"].inputs["ipConfigurations"][0]]}
    updated = estate.update("gateway", {**only, "bgpSettings": None})
    assert updated.outputs["bgpSettings"]["bgpPeeringAddress"] == "10.0.255.30"


def test_a_secret_shows_its_version_but_not_its_value(estate: Estate) -> None:
    secret = estate.twin("secret", "second", properties=Secret({"value": "hidden"}))
    assert "value" not in str(secret.outputs["properties"])
    again = estate.update("secret", {"properties.value": "other"}).outputs["properties"]["secretUriWithVersion"]
    before = estate["secret"].outputs["properties"]["secretUriWithVersion"]
    shape = r"https://apes-vault\.vault\.azure\.net/secrets/payload/[0-9a-f]{32}"
    assert again != before and re.fullmatch(shape, again) and re.fullmatch(shape, before)


def test_a_private_endpoint_keeps_its_address(estate: Estate) -> None:
    assert estate.update("endpoint", {"tags": {"a": "b"}}).outputs["customDnsConfigs"][0]["ipAddresses"] == ["10.0.1.5"]


def test_the_client_is_the_principal_that_creates_resources(estate: Estate) -> None:
    client = estate.simulation.invoke(estate.api.settings, "azure-native:authorization:getClientConfig", {})
    assert client["objectId"] == CLIENT and client["tenantId"] == TENANT
    assert client["subscriptionId"] == SUBSCRIPTION.rpartition("/")[2]
    mine = {"principalId": CLIENT, "principalType": "User"}
    assert estate.twin("host's role", guid("mine"), **mine)


# Key -> an invalid name, and the error code.
NAMES = [
    ("vault", "ap", "VaultNameNotValid"),
    ("vault", "a" * 25, "VaultNameNotValid.*it has 25 characters"),
    ("vault", "1apes", "VaultNameNotValid"),
    ("vault", "apes--vault", "VaultNameNotValid.*consecutive hyphens"),
    ("vault", "apes-", "VaultNameNotValid"),
    ("account", "apes-backups", "AccountNameInvalid"),
    ("account", "ap", "AccountNameInvalid"),
    ("account", "Apesbackups", "AccountNameInvalid"),
    ("account", "a" * 25, "AccountNameInvalid.*it has 25 characters"),
    ("secret", "a_b", "InvalidResourceName"),
    ("secret", "a" * 128, "InvalidResourceName.*it has 128"),
    ("key", "a.b", "InvalidResourceName"),
    ("identity", "-host", "InvalidResourceName"),
    ("identity", "ho", "InvalidResourceName"),
    ("machine", "etcd-1.", "InvalidResourceName"),
    ("machine", "a" * 65, "InvalidResourceName"),
    ("disk", "etcd 1", "InvalidResourceName"),
    ("zone", "internal", "InvalidResourceName"),
    ("container", "Backups", "InvalidResourceName"),
    ("container", "ab", "InvalidResourceName"),
    ("blobs", "other", "InvalidResourceName"),
    ("lock", "a/b", "InvalidResourceName"),
    ("balancer", "-api", "InvalidResourceName"),
]


@pytest.mark.parametrize(("key", "name", "match"), NAMES)
def test_an_invalid_name_is_refused(estate: Estate, key: str, name: str, match: str) -> None:
    with pytest.raises(RefusalError, match=match):
        estate.twin(key, name)


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        *[("resource_group", "group"), ("virtual_network", "network"), ("subnet", "subnet"), ("disk", "disk")],
        *[("virtual_machine", "machine"), ("scale_set", "scale set"), ("load_balancer", "balancer")],
        *[
            ("identity", "identity"),
            ("security_group", "rules"),
            ("key_vault", "vault"),
            ("storage_account", "account"),
        ],
    ],
)
def test_names_are_as_long_as_the_catalogue_says(kind: str, key: str) -> None:
    naming = CLOUD.types[token(key)].naming
    assert isinstance(naming, Naming)
    assert naming.longest == catalogue.of(Cloud.AZURE).names[kind].max
