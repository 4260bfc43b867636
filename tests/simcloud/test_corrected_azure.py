"""Inputs of Azure that simcloud refused until its rules were compared with the documentation, each with one that is refused still."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.simcloud.rules import RefusalError
from tests.simcloud.azure_places import STORE
from tests.simcloud.azure_support import Estate
from tests.simcloud.test_outside_azure import UPDATED

Changes = dict[str, Any]


def _sku(name: str) -> Changes:
    return {"sku": {"name": name, "tier": name}}


def _of_store(group: str) -> Changes:
    connection = {"name": "store", "privateLinkServiceId": STORE, "groupIds": [group]}
    return {"privateLinkServiceConnections": [connection]}


def _vault_for(*ranges: str) -> Changes:
    rules = [{"value": text} for text in ranges]
    return {"properties.networkAcls": {"defaultAction": "Deny", "bypass": "None", "ipRules": rules}}


def _account_for(*ranges: str) -> Changes:
    rules = [{"iPAddressOrRange": text} for text in ranges]
    return {"networkRuleSet": {"defaultAction": "Deny", "ipRules": rules}}


def _may(**permission: str) -> Changes:
    return {"permissions": [{name: [action] for name, action in permission.items()}]}


def _lasts(time: str) -> Changes:
    return {"properties.rotationPolicy": {"attributes": {"expiryTime": time}}}


def _stored(kind: str, sku: str) -> Changes:
    return {"kind": kind, "sku.name": sku}


# What, its page, key in the estate, changes that are accepted, changes that are refused, words of the refusal.
ROWS: list[tuple[str, str, str, Changes, Changes, str]] = [
    ("a gateway of a former SKU", "VPN Gateway SKU consolidation: since November 2025", "gateway",
     _sku("VpnGw3AZ"), _sku("VpnGw3"), "NonAzSkusNotAllowedForVPNGateway.*use VpnGw3AZ"),
    ("blobs in the other region", "What is a private endpoint: private-link resource", "endpoint",
     _of_store("blob_secondary"), _of_store("vault_secondary"), "wants vault_secondary"),
    ("page blobs in zones", "Storage account overview: premium page blobs", "account",
     _stored("StorageV2", "Premium_ZRS"), _stored("BlockBlobStorage", "Standard_ZRS"), "SKU is of another kind"),
    ("a vault for addresses of a provider's NAT", "IPRule; Configure network security for Azure Key Vault", "vault",
     _vault_for("100.64.0.0/10", "0.0.0.0/1"), _vault_for("172.31.0.0/24"), "private addresses are not allowed"),
    ("a vault for IPv6", "IPRule: an IPv4 address range", "vault", _vault_for("198.18.0.1"), _vault_for("2001:db8::1"), "only IPv4 is"),
    ("an account for addresses of documentation", "Restrictions for IP network rules", "account",
     _account_for("203.0.113.0/24"), _account_for("192.168.1.1"), "private addresses are not allowed"),
    ("an account for IPv6", "IPRule: only IPv4", "account", _account_for("203.0.113.7"), _account_for("2001:db8::/64"), "only IPv4 is"),
    ("an operation in capitals", "Azure resource provider operations", "own role",
     _may(actions="Microsoft.Insights/Metrics/Read"), _may(actions="Microsoft.Insights/Metrics/Get"), "write an operation"),
    ("an operation on data in capitals", "Azure resource provider operations", "own role",
     _may(dataActions="Microsoft.KeyVault/vaults/secrets/getSecret/Action"),
     _may(actions="Microsoft.KeyVault/vaults/secrets/getSecret/Action"), "write it in dataActions"),
    ("a key for a year and ten days", "KeyRotationPolicyAttributes: expiryTime", "key", _lasts("P1Y10D"), _lasts("P10DT1Y"), "28 days or more"),
    ("a key for 28 days in hours", "KeyRotationPolicyAttributes: expiryTime", "key", _lasts("PT672H"), _lasts("PT671H"), "28 days or more"),
]  # fmt: skip


def _try(api: Any, key: str, changes: Changes) -> None:
    estate = Estate(api("azure"))
    (estate.update if key in UPDATED else estate.recreate)(key, changes)


@pytest.mark.parametrize(("key", "changes"), [(row[2], row[3]) for row in ROWS], ids=[row[0] for row in ROWS])
def test_what_azure_takes_is_accepted(api: Any, key: str, changes: Changes) -> None:
    _try(api, key, changes)


@pytest.mark.parametrize(
    ("key", "changes", "words"), [(row[2], row[4], row[5]) for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_what_azure_refuses_is_refused_still(api: Any, key: str, changes: Changes, words: str) -> None:
    with pytest.raises(RefusalError, match=words):
        _try(api, key, changes)


def test_a_gateway_keeps_its_former_sku_and_none_gets_one(api: Any) -> None:
    estate = Estate(api("azure"))
    with pytest.raises(RefusalError, match="NonAzSkusNotAllowedForVPNGateway"):
        estate.update("gateway", _sku("VpnGw2"))
    for end in (1, 2):
        estate[f"gateway address {end}"].inputs.pop("zones")
    estate["gateway"].inputs["sku"] = {"name": "VpnGw2", "tier": "VpnGw2"}
    assert estate.update("gateway", {"tags": {"team": "apes"}}).inputs["sku"]["name"] == "VpnGw2"
    estate["gateway address 1"].inputs["zones"] = ["1"]
    with pytest.raises(RefusalError, match="RegionalVmssVpnGatewayPublicIpsMustNotHaveZonesConfigured"):
        estate.update("gateway", {"tags": {"team": "gibbons"}})


@pytest.mark.parametrize(
    ("region", "sku", "refused"),
    [
        ("swedencentral", "PremiumV2_LRS", ""),
        ("westeurope", "PremiumV2_LRS", "must be in an availability zone of westeurope"),
        ("swedencentral", "UltraSSD_LRS", "must be in an availability zone of swedencentral"),
    ],
)
def test_some_regions_have_premium_v2_disks_without_a_zone(api: Any, region: str, sku: str, refused: str) -> None:
    """See the regional availability in "Deploy a Premium SSD v2 managed disk"."""
    azure = api("azure", location=region)
    azure.create("azure-native:resources:ResourceGroup", "group", resourceGroupName="apes")
    disk = {
        "resourceGroupName": "apes",
        "diskName": "a",
        "sku": {"name": sku},
        "diskSizeGB": 64,
        "creationData": {"createOption": "Empty"},
    }
    if refused:
        with pytest.raises(RefusalError, match=refused):
            azure.create("azure-native:compute:Disk", "disk", **disk)
    else:
        assert azure.create("azure-native:compute:Disk", "disk", **disk).region == region


def test_an_endpoint_of_the_other_region_has_its_name(api: Any) -> None:
    estate = Estate(api("azure"))
    endpoint = estate.recreate("endpoint", _of_store("blob_secondary"))
    assert endpoint.outputs["customDnsConfigs"][0]["fqdn"] == "apesbackups-secondary.blob.core.windows.net"
