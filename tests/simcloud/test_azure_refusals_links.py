"""What Azure refuses of private endpoints, DNS and VPN gateways: the estate with one property changed."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.simcloud.rules import RefusalError
from tests.simcloud.azure_places import GATEWAY, NET, NODES, VAULT
from tests.simcloud.azure_support import Estate, inputs

CHANGES: list[tuple[str, str, dict[str, Any], str]] = [
    # Private endpoints and DNS.
    (
        "an endpoint's service exists",
        "endpoint",
        {"privateLinkServiceConnections[0].privateLinkServiceId": f"{VAULT}-2"},
        "InvalidResourceReference.*apes-vault-2",
    ),
    (
        "an endpoint's group is one of its service's",
        "endpoint",
        {"privateLinkServiceConnections[0].groupIds": ["blob"]},
        "wants blob of .*apes-vault.*one of vault",
    ),
    (
        "a private zone is global",
        "zone",
        {"location": "westeurope"},
        "LocationNotAvailableForResourceType.*'global'",
    ),
    (
        "a zone's link is global",
        "link",
        {"location": "westeurope"},
        "LocationNotAvailableForResourceType.*'global'",
    ),
    (
        "a record set has records of its type",
        "records",
        {"aRecords": None, "cnameRecord": {"cname": "x"}},
        "of type A has cnameRecord.*set aRecords",
    ),
    ("a record's address is valid", "records", {"aRecords[0].ipv4Address": "10.0.1"}, "'10.0.1' is not a valid IPv4"),
    (
        "an endpoint's zone exists",
        "zone group",
        {"privateDnsZoneConfigs[0].privateDnsZoneId": f"{NET}/privateDnsZones/none.internal"},
        "InvalidResourceReference.*none.internal",
    ),
    # VPN.
    (
        "a gateway is in GatewaySubnet",
        "gateway",
        {"ipConfigurations[0].subnet.id": NODES},
        "must be named GatewaySubnet",
    ),
    ("a gateway's SKU and tier are the same", "gateway", {"sku.tier": "VpnGw1AZ"}, "VpnGw2AZ of the tier VpnGw1AZ"),
    ("a policy-based gateway is refused", "gateway", {"vpnType": "PolicyBased"}, "is not a route-based VPN gateway"),
    (
        "a Basic gateway has no BGP",
        "gateway",
        {"sku": {"name": "Basic", "tier": "Basic"}},
        "neither BGP nor active-active",
    ),
    (
        "zonal addresses need a zonal gateway",
        "gateway",
        {"sku": {"name": "Basic", "tier": "Basic"}, "enableBgp": False, "activeActive": False},
        "RegionalVmssVpnGatewayPublicIpsMustNotHaveZonesConfigured",
    ),
    (
        "an active-active gateway has two configurations",
        "gateway",
        {"ipConfigurations": inputs("gateway")["ipConfigurations"][:1]},
        "ActiveActiveGatewayMustHaveTwoIpConfigurations.*it has 1",
    ),
    ("two configurations need an active-active gateway", "gateway", {"activeActive": False}, "is not active-active"),
    ("a gateway's ASN is not IANA's", "gateway", {"bgpSettings.asn": 64500}, "ASN 64500 .* is reserved"),
    ("a gateway's ASN is not another of Azure's", "gateway", {"bgpSettings.asn": 65517}, "ASN 65517 .* is reserved"),
    (
        "a gateway's APIPA address is in Azure's range",
        "gateway",
        {"bgpSettings.bgpPeeringAddresses[0].customBgpIpAddresses": ["169.254.23.1"]},
        "169.254.23.1 .* outside.*169.254.21.0 to 169.254.22.255",
    ),
    (
        "a gateway's BGP address belongs to its own configuration",
        "gateway",
        {"bgpSettings.bgpPeeringAddresses[0].ipconfigurationId": f"{GATEWAY}/ipConfigurations/none"},
        "InvalidResourceReference.*ipConfigurations/none",
    ),
    ("a site's ASN is not the gateway's", "site", {"bgpSettings.asn": 65515}, "ASN 65515 .* reserved by Azure or IANA"),
    ("a site has an address or a name", "site", {"fqdn": "edge.example"}, "both gatewayIpAddress and fqdn"),
    ("a site's address is valid", "site", {"gatewayIpAddress": "203.0.113"}, "'203.0.113' .* not an IPv4 address"),
    (
        "a site's BGP address is not its device's",
        "site",
        {"bgpSettings.bgpPeeringAddress": "203.0.113.7"},
        "is the public address of its device",
    ),
    (
        "a site's APIPA address is in Azure's range",
        "site",
        {"bgpSettings.bgpPeeringAddress": "169.254.20.5"},
        "169.254.20.5 .* outside what Azure takes",
    ),
    ("a site has addresses or BGP", "site", {"bgpSettings": None}, "no address space and no BGP"),
    (
        "a connection's key has no hyphen",
        "connection",
        {"sharedKey": "correct-horse"},
        "printable ASCII characters without space, hyphen and tilde",
    ),
    (
        "a connection has at most one policy",
        "connection",
        {"ipsecPolicies": [{}, {}]},
        "more than one IPsec policy",
    ),
    (
        "a connection's BGP address is its gateway's",
        "connection",
        {"gatewayCustomBgpIpAddresses[0].customBgpIpAddress": "169.254.21.200"},
        "169.254.21.200 .* not one of its gateway's.*169.254.21.4",
    ),
    ("a connection has the type IPsec", "connection", {"connectionType": "Vnet2Vnet"}, "not the type IPsec"),
]


@pytest.fixture
def estate(api: Any) -> Estate:
    return Estate(api("azure"))


@pytest.mark.parametrize(("key", "changes", "match"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_azure_refuses_invalid_endpoints_and_vpns(
    estate: Estate, key: str, changes: dict[str, Any], match: str
) -> None:
    with pytest.raises(RefusalError, match=match):
        estate.retry(key, changes)
