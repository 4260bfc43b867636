"""Wrong inputs that Azure refuses, written without knowledge of the simulated Azure. Each has its right form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from sandbox.simcloud.rules import RefusalError
from sandbox.simcloud.world import Record
from tests.simcloud.azure_places import NET, NODES, STORE, own
from tests.simcloud.azure_support import Estate

Act = Callable[[], Record]
Form = Callable[[Estate, str], Act]
"""Creates what the tested resource needs, and returns what creates or updates that resource."""

BLOB_ZONE = "privatelink.blob.core.windows.net"


def _changed(**changes: Any) -> Form:
    """Change the estate's own resource, by an update, or by creating it again if it can't be updated."""
    return lambda estate, key: lambda: estate.retry(key, changes)


def _paths(changes: Mapping[str, Any]) -> Form:
    return _changed(**changes)


def _twin(name: str, **changes: Any) -> Form:
    """Create a second resource of the same kind."""
    return lambda estate, key: lambda: estate.twin(key, name, **changes)


def _second_rule(backend_port: int) -> Form:
    rule = {
        "name": "public",
        "protocol": "Tcp",
        "frontendPort": 443,
        "backendPort": backend_port,
        "frontendIPConfiguration": own("frontendIPConfigurations/api"),
        "backendAddressPool": own("backendAddressPools/api"),
        "probe": own("probes/api"),
    }
    return _paths({"loadBalancingRules[1]": rule})


def _second_address(subnet: str) -> Form:
    def form(estate: Estate, key: str) -> Act:
        estate.twin("subnet", "workers", addressPrefix="10.0.2.0/24")
        second = {"name": "second", "subnet": {"id": subnet}, "privateIPAllocationMethod": "Dynamic"}
        return lambda: estate.retry(key, {"ipConfigurations[0].primary": True, "ipConfigurations[1]": second})

    return form


def _other_network(estate: Estate, key: str) -> Act:
    estate.twin("network", "other", **{"addressSpace.addressPrefixes": ["10.1.0.0/16"]})
    return lambda: estate.twin(key, "other", **{"virtualNetwork.id": f"{NET}/virtualNetworks/other"})


def _other_endpoint(estate: Estate, key: str) -> Act:
    service = {"name": "blob", "privateLinkServiceId": STORE, "groupIds": ["blob"]}
    estate.twin("zone", BLOB_ZONE)
    estate.twin("endpoint", "blob", privateLinkServiceConnections=[service])
    config = {"name": "blob", "privateDnsZoneId": f"{NET}/privateDnsZones/{BLOB_ZONE}"}
    return lambda: estate.twin(key, "default", privateEndpointName="blob", privateDnsZoneConfigs=[config])


def _scale_set(priority: str) -> Form:
    return _twin(
        "spot",
        **{
            "virtualMachineProfile.priority": priority,
            "virtualMachineProfile.evictionPolicy": "Delete",
            "upgradePolicy": {"mode": "Manual"},
            "automaticRepairsPolicy": None,
        },
    )


def _gateway(size: str) -> Form:
    return _paths({"vpnGatewayGeneration": "Generation2", "sku.name": size, "sku.tier": size})


def _connection(integrity: str) -> Form:
    policy = {
        "ikeEncryption": "GCMAES256",
        "ikeIntegrity": "SHA384",
        "dhGroup": "ECP384",
        "ipsecEncryption": "GCMAES256",
        "ipsecIntegrity": integrity,
        "pfsGroup": "ECP384",
        "saLifeTimeSeconds": 27000,
        "saDataSizeKilobytes": 102_400_000,
    }
    return _changed(ipsecPolicies=[policy])


def _admits(prefixes: list[str]) -> Form:
    return _paths({"securityRules[0].sourceAddressPrefix": None, "securityRules[0].sourceAddressPrefixes": prefixes})


def _reachable_from(address: str) -> Form:
    rules = {"bypass": "AzureServices", "defaultAction": "Deny", "ipRules": [{"iPAddressOrRange": address}]}
    return _changed(networkRuleSet=rules)


def _may(kind: str) -> Form:
    return _changed(permissions=[{kind: ["Microsoft.KeyVault/vaults/secrets/getSecret/action"]}])


ROWS: list[tuple[str, str, str, Form, Form]] = [
    (
        "a public address's DNS label has capital letters",
        (
            "Public IP addresses, DNS name label: InvalidDomainNameLabel: It must conform to the following regular "
            "expression: ^[a-z][a-z0-9-]{1,61}[a-z0-9]$"
        ),
        "address",
        _paths({"dnsSettings.domainNameLabel": "Apes-NAT"}),
        _paths({"dnsSettings.domainNameLabel": "apes-nat"}),
    ),
    (
        "a route to the gateway has the address of an appliance",
        "github.com/XenitAB/terraform-modules, issue 303: Azure only allows a next hop's address with VirtualAppliance",
        "routes",
        _paths({"routes[0].nextHopIpAddress": "10.0.1.10"}),
        _paths({"routes[0].nextHopIpAddress": "10.0.1.10", "routes[0].nextHopType": "VirtualAppliance"}),
    ),
    (
        "a rule has a service tag among several sources",
        (
            "github.com/hashicorp/terraform-provider-azurerm, issue 5617: "
            "SecurityRuleParameterContainsUnsupportedValue: cannot specify existing VIRTUALNETWORK, INTERNET, "
            "AZURELOADBALANCER, '*' or system tags"
        ),
        "rules",
        _admits(["10.0.1.0/24", "VirtualNetwork"]),
        _admits(["10.0.1.0/24", "10.0.2.0/24"]),
    ),
    (
        "two rules of a load balancer forward to one port of a pool",
        "github.com/MicrosoftDocs/azure-docs, issue 117762: RulesUseSameBackendPortProtocolAndPool",
        "balancer",
        _second_rule(6443),
        _second_rule(8132),
    ),
    (
        "an interface has addresses in two subnets",
        "github.com/Azure/azure-sdk-for-java, issue 1865: IPConfigurations on a Nic cannot belong to different subnets",
        "interface",
        _second_address(f"{NET}/virtualNetworks/network/subnets/workers"),
        _second_address(NODES),
    ),
    (
        "a key for hardware modules is in a vault of the standard tier",
        "About keys, Azure Key Vault: HSM-protected keys need a vault of the Premium SKU",
        "key",
        _twin("more", **{"properties.kty": "RSA-HSM"}),
        _twin("more", **{"properties.kty": "RSA"}),
    ),
    (
        "a Premium SSD v2 disk has more MB/s than a quarter of its IOPS",
        "Azure managed disk types, Premium SSD v2 throughput: InvalidParameter",
        "disk",
        _changed(diskIOPSReadWrite=4000, diskMBpsReadWrite=1100),
        _changed(diskIOPSReadWrite=4000, diskMBpsReadWrite=1000),
    ),
    (
        "a Linux machine's name has an underscore",
        (
            "github.com/hashicorp/terraform-provider-azurerm, issue 280: InvalidParameter: Linux host name cannot "
            "exceed 64 characters in length or contain the following characters"
        ),
        "machine",
        _paths({"osProfile.computerName": "etcd_1"}),
        _paths({"osProfile.computerName": "etcd-one"}),
    ),
    (
        "a scale set of regular machines has an eviction policy",
        (
            "github.com/ray-project/ray, pull request 46959: Eviction policy can be set only on Azure Spot Virtual "
            "Machines"
        ),
        "scale set",
        _scale_set("Regular"),
        _scale_set("Spot"),
    ),
    (
        "a storage account's firewall has a range of one address",
        (
            "github.com/hashicorp/terraform-provider-azurerm, issue 5444: InvalidValuesForRequestParameters: Values "
            "for request parameters are invalid: networkAcls.ipRule[*].value"
        ),
        "account",
        _reachable_from("203.0.113.7/32"),
        _reachable_from("203.0.113.7"),
    ),
    (
        "a private zone has two links to one network",
        (
            "github.com/MicrosoftDocs/azure-aks-docs, issue 212: BadRequest: A virtual network cannot be linked to "
            "multiple zones with overlapping namespaces"
        ),
        "link",
        _twin("again"),
        _other_network,
    ),
    (
        "a private endpoint has two groups of zones",
        (
            "github.com/pulumi/pulumi-azure-native, issue 2179: Cannot create more than one private dns zone groups in the "
            "private endpoint"
        ),
        "zone group",
        _twin("second"),
        _other_endpoint,
    ),
    (
        "a VPN gateway of the second generation has a size of the first",
        "github.com/Azure/Enterprise-Scale, issue 504: VirtualNetworkGatewaySkuCannotBeCreatedForSpecifiedVmGeneration",
        "gateway",
        _gateway("VpnGw1AZ"),
        _gateway("VpnGw2AZ"),
    ),
    (
        "a connection's IPsec policy combines GCM with another integrity algorithm",
        (
            "About cryptographic requirements and Azure VPN gateways: with GCMAES as the IPsec encryption, select the same "
            "algorithm and key length for IPsec integrity"
        ),
        "connection",
        _connection("SHA256"),
        _connection("GCMAES256"),
    ),
    (
        "a role has a data action among its actions",
        (
            "Understand Azure role definitions: InvalidActionOrNotAction: does not match any of the actions "
            "supported by the providers"
        ),
        "own role",
        _may("actions"),
        _may("dataActions"),
    ),
    (
        "a proximity placement group has a zone without an intent",
        (
            "github.com/Azure/azure-cli, issue 22101: The availability zone can be provided only when an intent is "
            "provided"
        ),
        "proximity",
        _changed(zones=["1"]),
        _paths({"zones": ["1"], "intent.vmSizes": ["Standard_D4s_v5"]}),
    ),
]
NAMES = [what for what, *_ in ROWS]


@pytest.mark.parametrize(("what", "source", "key", "wrong", "right"), ROWS, ids=NAMES)
def test_azure_refuses_the_wrong_form(api: Any, what: str, source: str, key: str, wrong: Form, right: Form) -> None:
    act = wrong(Estate(api("azure")), key)
    with pytest.raises(RefusalError):
        act()


@pytest.mark.parametrize(("what", "source", "key", "wrong", "right"), ROWS, ids=NAMES)
def test_azure_accepts_the_right_form(api: Any, what: str, source: str, key: str, wrong: Form, right: Form) -> None:
    assert right(Estate(api("azure")), key)().id
