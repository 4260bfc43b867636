"""What Azure refuses of addresses, routes, security groups and load balancers: the estate with one property changed."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.simcloud.rules import RefusalError
from tests.simcloud.azure_places import NET, RULE, own
from tests.simcloud.azure_support import Estate, inputs

CHANGES: list[tuple[str, str, dict[str, Any], str]] = [
    # Addresses.
    ("a Basic public address is refused", "address", {"sku": None}, "IPv4BasicSkuPublicIpCountLimitReached"),
    (
        "a Standard public address is static",
        "address",
        {"publicIPAllocationMethod": "Dynamic"},
        "StandardAndHigherSkuPublicIPAddressesMustBeStatic.*must have AllocationMethod set to Static",
    ),
    (
        "a static address is in the subnet",
        "interface",
        {"ipConfigurations[0].privateIPAddress": "10.0.2.10"},
        "PrivateIPAddressNotInSubnet.*10.0.2.10.*10.0.1.0/24",
    ),
    (
        "the fourth address of a subnet is reserved",
        "interface",
        {"ipConfigurations[0].privateIPAddress": "10.0.1.3"},
        "PrivateIPAddressInReservedRange.*first free one is 10.0.1.4",
    ),
    (
        "the last address of a subnet is reserved",
        "interface",
        {"ipConfigurations[0].privateIPAddress": "10.0.1.255"},
        "PrivateIPAddressInReservedRange",
    ),
    (
        "an interface's address is not the load balancer's",
        "interface",
        {"ipConfigurations[0].privateIPAddress": "10.0.1.4"},
        "PrivateIPAddressIsAllocated.*loadBalancers/api",
    ),
    (
        "a frontend's address is not an interface's",
        "balancer",
        {"frontendIPConfigurations[0].privateIPAddress": "10.0.1.10"},
        "PrivateIPAddressIsAllocated.*networkInterfaces/etcd-1",
    ),
    (
        "a frontend's address is not reserved",
        "balancer",
        {"frontendIPConfigurations[0].privateIPAddress": "10.0.1.0"},
        "PrivateIPAddressInReservedRange",
    ),
    (
        "a static configuration has an address",
        "interface",
        {"ipConfigurations[0].privateIPAddress": None},
        "has the allocation method Static and no address",
    ),
    (
        "a private endpoint's address is free",
        "endpoint",
        {"ipConfigurations": [{"name": "vault", "privateIPAddress": "10.0.1.10"}]},
        "PrivateIPAddressIsAllocated",
    ),
    # NAT and routes.
    ("a NAT gateway has a SKU", "nat", {"sku": None}, "must have the SKU Standard"),
    ("a NAT gateway is in one zone", "nat", {"zones": ["1", "2"]}, "a NAT gateway is in one"),
    (
        "a NAT gateway's addresses have its SKU",
        "nat",
        {"sku.name": "StandardV2"},
        "has the SKU Standard; NAT gateway .* takes StandardV2",
    ),
    (
        "a NAT gateway's address has no other user",
        "nat",
        {"publicIpAddresses[0].id": f"{NET}/publicIPAddresses/vpn-1"},
        "PublicIPAddressInUse.*already allocated to resource .*virtualNetworkGateways/gateway",
    ),
    ("a route has a valid next hop", "routes", {"routes[0].nextHopType": "Router"}, "has the next hop Router"),
    (
        "an appliance has an address",
        "routes",
        {"routes[0].nextHopType": "VirtualAppliance"},
        "nextHopIpAddress goes with the next hop VirtualAppliance",
    ),
    (
        "two routes have two prefixes",
        "routes",
        {"routes[1]": {"name": "other", "addressPrefix": "10.9.0.0/16", "nextHopType": "None"}},
        "Routes site and other have the same prefix 10.9.0.0/16",
    ),
    # Network security groups.
    (
        "a priority is at least 100",
        "rules",
        {"securityRules[0].priority": 99},
        "SecurityRuleInvalidPriority.*: 99 Allowed",
    ),
    (
        "a priority is at most 4096",
        "rules",
        {"securityRules[0].priority": 4097},
        "SecurityRuleInvalidPriority.*100-4096",
    ),
    (
        "a priority is unique per direction",
        "rules",
        {"securityRules[1]": {**RULE, "name": "second"}},
        "SecurityRuleConflict.*second conflicts with rule etcd.*same Priority and Direction",
    ),
    (
        "a rule's name is unique",
        "rules",
        {"securityRules[1]": {**RULE, "name": "ETCD", "priority": 101}},
        "InvalidResourceName.*ETCD",
    ),
    (
        "a rule has one prefix or many",
        "rules",
        {"securityRules[0].sourceAddressPrefixes": ["10.0.2.0/24"]},
        "sourceAddressPrefix and sourceAddressPrefixes",
    ),
    (
        "a rule has a port",
        "rules",
        {"securityRules[0].destinationPortRanges": None},
        "neither destinationPortRange nor destinationPortRanges",
    ),
    (
        "a list of prefixes has no service tag",
        "rules",
        {"securityRules[0].sourceAddressPrefix": None, "securityRules[0].sourceAddressPrefixes": ["Internet"]},
        "SecurityRuleParameterContainsUnsupportedValue.*Internet",
    ),
    (
        "a port range is not reversed",
        "rules",
        {"securityRules[0].destinationPortRanges[0]": "2380-2379"},
        "SecurityRuleInvalidPortRange.*2380-2379",
    ),
    (
        "a port is at most 65535",
        "rules",
        {"securityRules[0].destinationPortRanges[0]": "65536"},
        "SecurityRuleInvalidPortRange",
    ),
    (
        "a group has at most 1000 rules",
        "rules",
        {"securityRules": [{**RULE, "name": f"r{i}", "priority": 100 + i} for i in range(1001)]},
        "MaxSecurityRulesLimitExceeded.*has 1001",
    ),
    (
        "all rules of a group name at most 4000 sources",
        "rules",
        {
            "securityRules": [
                {
                    **{key: value for key, value in RULE.items() if key != "sourceAddressPrefix"},
                    "name": f"r{i}",
                    "priority": 100 + i,
                    "sourceAddressPrefixes": [f"10.{i}.{number % 256}.{number // 256}/32" for number in range(801)],
                }
                for i in range(5)
            ]
        },
        "MaxAddressPrefixesLimitExceeded.*4005 address prefixes as sourceAddressPrefixes",
    ),
    # Subnets.
    (
        "a gateway's subnet has no security group",
        "gateway subnet",
        {"networkSecurityGroup": {"id": f"{NET}/networkSecurityGroups/rules"}},
        "cannot have a networkSecurityGroup",
    ),
    (
        "a gateway's subnet has no NAT gateway",
        "gateway subnet",
        {"natGateway": {"id": f"{NET}/natGateways/nat"}},
        "cannot have a natGateway",
    ),
    (
        "a subnet's security group exists",
        "subnet",
        {"networkSecurityGroup.id": f"{NET}/networkSecurityGroups/none"},
        "InvalidResourceReference.*networkSecurityGroups/none",
    ),
    (
        "a subnet's NAT gateway exists",
        "subnet",
        {"natGateway.id": f"{NET}/natGateways/none"},
        "InvalidResourceReference.*natGateways/none",
    ),
    (
        "a subnet's route table exists",
        "subnet",
        {"routeTable.id": f"{NET}/routeTables/none"},
        "InvalidResourceReference.*routeTables/none",
    ),
    # Load balancers.
    (
        "a frontend has one kind of address",
        "balancer",
        {"frontendIPConfigurations[0].publicIPAddress": {"id": f"{NET}/publicIPAddresses/nat"}},
        "has subnet and publicIPAddress",
    ),
    (
        "pools have unique names",
        "balancer",
        {"backendAddressPools[2]": {"name": "API"}},
        "backendAddressPools has api twice",
    ),
    (
        "a rule names the balancer's own probe",
        "balancer",
        {"loadBalancingRules[0].probe": own("probes/none")},
        "InvalidResourceReference.*probes/none",
    ),
    (
        "a rule names the balancer's own pool",
        "balancer",
        {"loadBalancingRules[0].backendAddressPool": own("backendAddressPools/none")},
        "InvalidResourceReference.*backendAddressPools/none",
    ),
    (
        "a rule names the balancer's own frontend",
        "balancer",
        {"loadBalancingRules[0].frontendIPConfiguration": own("frontendIPConfigurations/none")},
        "InvalidResourceReference.*frontendIPConfigurations/none",
    ),
    ("a probe by HTTPS has a path", "balancer", {"probes[0].requestPath": None}, "requestPath is required"),
    ("a probe by TCP has no path", "balancer", {"probes[0].protocol": "Tcp"}, "not allowed if it is Tcp"),
    ("a probe's interval is at least 5 seconds", "balancer", {"probes[0].intervalInSeconds": 4}, "must be at least 5"),
    (
        "two rules do not share a frontend's port",
        "balancer",
        {"loadBalancingRules[1]": {**inputs("balancer")["loadBalancingRules"][0], "name": "two", "backendPort": 1}},
        "RulesUseSameFrontendPortProtocolAndIPConfig",
    ),
    (
        "two rules do not share a pool's port",
        "balancer",
        {"loadBalancingRules[1]": {**inputs("balancer")["loadBalancingRules"][0], "name": "two", "frontendPort": 1}},
        "RulesUseSameBackendPortProtocolAndPool",
    ),
    ("all protocols need all ports", "balancer", {"loadBalancingRules[0].protocol": "All"}, "ports 0 and 0"),
    (
        "an interface's pool exists",
        "interface",
        {"ipConfigurations[0].loadBalancerBackendAddressPools": [own("backendAddressPools/none")]},
        "InvalidResourceReference.*backendAddressPools/none",
    ),
    (
        "an interface's public address has no other user",
        "interface",
        {"ipConfigurations[0].publicIPAddress": {"id": f"{NET}/publicIPAddresses/nat"}},
        "PublicIPAddressInUse.*natGateways/nat",
    ),
]


@pytest.fixture
def estate(api: Any) -> Estate:
    return Estate(api("azure"))


@pytest.mark.parametrize(("key", "changes", "match"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_azure_refuses_invalid_network_resources(estate: Estate, key: str, changes: dict[str, Any], match: str) -> None:
    with pytest.raises(RefusalError, match=match):
        estate.retry(key, changes)


def test_an_inline_subnet_in_use_cannot_be_removed_or_changed(api):
    """The range of an inline subnet in use cannot change either, and a GatewaySubnet cannot have a NAT gateway."""
    azure = api("azure")
    azure.create("azure-native:resources:ResourceGroup", resourceGroupName="apes")
    subnet = {"name": "nodes", "addressPrefix": "10.1.0.0/24"}
    network = azure.create(
        "azure-native:network:VirtualNetwork",
        resourceGroupName="apes",
        virtualNetworkName="own",
        addressSpace={"addressPrefixes": ["10.1.0.0/16"]},
        subnets=[subnet, {"name": "empty", "addressPrefix": "10.1.1.0/24"}],
    )
    azure.create(
        "azure-native:network:NetworkInterface",
        resourceGroupName="apes",
        networkInterfaceName="nic",
        ipConfigurations=[{"name": "own", "subnet": {"id": f"{network.id}/subnets/nodes"}}],
    )
    for subnets, message in (
        ([], "InUseSubnetCannotBeDeleted"),
        ([{**subnet, "addressPrefix": "10.1.2.0/24"}], "InUsePrefixCannotBeDeleted"),
        ([subnet, {"name": "GatewaySubnet", "addressPrefix": "10.1.3.0/27", "natGateway": {"id": "x"}}], "natGateway"),
    ):
        with pytest.raises(RefusalError, match=message):
            azure.update(network, subnets=subnets)
    assert [shown["name"] for shown in azure.update(network, subnets=[subnet]).outputs["subnets"]] == ["nodes"]
