"""Azure without an engine: what it makes of a request and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.simcloud.rules import Offers, RefusalError

GROUP = "azure-native:resources:ResourceGroup"
NETWORK = "azure-native:network:VirtualNetwork"
SUBNET = "azure-native:network:Subnet"
RULES = "azure-native:network:NetworkSecurityGroup"
INTERFACE = "azure-native:network:NetworkInterface"
SCALE_SET = "azure-native:compute:VirtualMachineScaleSet"


@pytest.fixture
def azure(api: Any) -> Any:
    cloud = api("azure")
    cloud.create(GROUP, resourceGroupName="apes")
    return cloud


def _network(azure: Any, name: str = "network", **inputs: object) -> Any:
    space = {"addressPrefixes": ["10.0.0.0/16"]}
    return azure.create(NETWORK, resourceGroupName="apes", virtualNetworkName=name, addressSpace=space, **inputs)


def _subnet(azure: Any, prefix: str = "10.0.1.0/24", name: str = "nodes", **inputs: object) -> Any:
    names = {"resourceGroupName": "apes", "virtualNetworkName": "network", "subnetName": name}
    return azure.create(SUBNET, addressPrefix=prefix, **names, **inputs)


def _interface(azure: Any, subnet: str, name: str = "etcd-1", **inputs: object) -> Any:
    configurations = [{"name": "main", "subnet": {"id": subnet}}]
    return azure.create(
        INTERFACE, resourceGroupName="apes", networkInterfaceName=name, ipConfigurations=configurations, **inputs
    )


def test_ids_are_well_formed_and_case_insensitive(azure: Any) -> None:
    _network(azure)
    subnet = _subnet(azure)
    group = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/apes"
    assert subnet.id == f"{group}/providers/Microsoft.Network/virtualNetworks/network/subnets/nodes"
    assert _interface(azure, subnet.id.upper()).targets[1] == subnet.key


def test_a_type_with_an_api_version_has_the_rules_of_the_type_without(azure: Any) -> None:
    network = azure.create(
        "azure-native:network/v20240501:VirtualNetwork", resourceGroupName="apes", virtualNetworkName="network"
    )
    assert network.type == NETWORK


def test_the_location_defaults_to_the_provider_s_or_else_the_resource_group_s(api: Any) -> None:
    azure = api("azure", location="")
    azure.create(GROUP, resourceGroupName="apes", location="swedencentral")
    assert _network(azure).inputs["location"] == "swedencentral"
    assert _subnet(azure).region == "swedencentral"


def test_resources_without_their_group_or_network_are_refused(azure: Any) -> None:
    with pytest.raises(RefusalError, match="ResourceGroupNotFound.*resourceGroups/none"):
        azure.create(RULES, resourceGroupName="none", networkSecurityGroupName="rules")
    with pytest.raises(RefusalError, match="ParentResourceNotFound.*virtualNetworks/network"):
        _subnet(azure)


def test_a_second_resource_with_the_same_name_is_refused_in_any_case(azure: Any) -> None:
    _network(azure)
    with pytest.raises(RefusalError, match="cannot create already existing resource .*/virtualNetworks/Network'"):
        _network(azure, "Network")


def test_a_subnet_is_inside_its_network_and_overlaps_no_other(azure: Any) -> None:
    _network(azure, subnets=[{"name": "inline", "addressPrefix": "10.0.9.0/24"}])
    _subnet(azure)
    with pytest.raises(RefusalError, match="NetcfgSubnetRangeOutsideVnet.*10.1.0.0/24 must be in 10.0.0.0/16"):
        _subnet(azure, "10.1.0.0/24", "second")
    with pytest.raises(RefusalError, match="NetcfgSubnetRangesOverlap.*subnets/nodes has 10.0.1.0/24"):
        _subnet(azure, "10.0.0.0/23", "second")
    with pytest.raises(RefusalError, match="NetcfgSubnetRangesOverlap.*subnets/inline has 10.0.9.0/24"):
        _subnet(azure, "10.0.9.0/25", "second")
    with pytest.raises(RefusalError, match="cannot create already existing resource .*subnets/inline"):
        _subnet(azure, "10.0.8.0/24", "inline")


@pytest.mark.parametrize(
    ("subnets", "code"),
    [
        (["10.1.0.0/24"], "NetcfgSubnetRangeOutsideVnet"),
        (["10.0.1.0/24", "10.0.0.0/23"], "NetcfgSubnetRangesOverlap"),
    ],
)
def test_inline_subnets_have_the_same_rules(azure: Any, subnets: list[str], code: str) -> None:
    with pytest.raises(RefusalError, match=code):
        _network(azure, subnets=[{"name": f"s{i}", "addressPrefix": prefix} for i, prefix in enumerate(subnets)])


def test_an_interface_is_in_the_region_of_its_network_and_keeps_its_address(azure: Any) -> None:
    _network(azure)
    subnet = _subnet(azure).id
    first = _interface(azure, subnet)
    second = _interface(azure, subnet, "etcd-2")
    addresses = [record.outputs["ipConfigurations"][0]["privateIPAddress"] for record in (first, second)]
    assert addresses == ["10.0.1.4", "10.0.1.5"]
    changed = azure.update(second, enableIPForwarding=True)
    assert changed.outputs["ipConfigurations"] == second.outputs["ipConfigurations"]
    with pytest.raises(RefusalError, match="both resources are in the same region.*it is in westeurope"):
        _interface(azure, subnet, "etcd-3", location="eastus")


def test_a_subnet_in_use_keeps_its_range_and_is_deleted_only_with_its_group(azure: Any) -> None:
    network = _network(azure)
    subnet = _subnet(azure)
    interface = _interface(azure, subnet.id)
    with pytest.raises(RefusalError, match=f"InUseSubnetCannotBeDeleted.*{interface.id}"):
        azure.delete(subnet)
    with pytest.raises(RefusalError, match=f"InUseSubnetCannotBeDeleted.*{interface.id}"):
        azure.delete(network)
    with pytest.raises(RefusalError, match="InUsePrefixCannotBeDeleted.*10.0.1.0/24"):
        azure.update(subnet, addressPrefix="10.0.2.0/24")
    azure.delete(azure.world.of_type(GROUP)[0])
    assert len(azure.world) == 0


def test_changes_of_fixed_properties_of_a_scale_set_are_planned_as_an_update_and_refused(azure: Any) -> None:
    inputs = {"resourceGroupName": "apes", "vmScaleSetName": "api", "sku": {"name": "Standard_D4s_v5"}}
    api = azure.create(SCALE_SET, virtualMachineProfile={"priority": "Regular"}, **inputs)
    spot = {"virtualMachineProfile": {"priority": "Spot"}}
    assert azure.replaces(SCALE_SET, api.inputs, {**api.inputs, **spot}) == []
    with pytest.raises(RefusalError, match="PropertyChangeNotAllowed.*virtualMachineProfile.priority.*replace_on_chan"):
        azure.update(api, **spot)


def test_zones_and_machine_types_must_be_offered(api: Any) -> None:
    azure = api("azure", offers=Offers(refuse=lambda place: "did you mean Standard_D4s_v5?"))
    azure.create(GROUP, resourceGroupName="apes")
    names = {"resourceGroupName": "apes", "vmScaleSetName": "api"}
    with pytest.raises(RefusalError, match="SkuNotAvailable.*Standard_D4s_v9.*did you mean Standard_D4s_v5"):
        azure.create(SCALE_SET, sku={"name": "Standard_D4s_v9"}, **names)
    with pytest.raises(
        RefusalError, match="InvalidAvailabilityZone.*'4'.*supported zones for location westeurope are 1"
    ):
        azure.create(SCALE_SET, sku={"name": "Standard_D4s_v5"}, zones=["4"], **names)


@pytest.mark.parametrize(
    ("token", "property_", "name"),
    [(GROUP, "resourceGroupName", "apes."), (NETWORK, "virtualNetworkName", "-apes"), (SUBNET, "subnetName", "a" * 81),
     (SCALE_SET, "vmScaleSetName", "api_1")],
)  # fmt: skip
def test_an_invalid_name_is_refused_before_anything_is_created(api: Any, token: str, property_: str, name: str) -> None:
    with pytest.raises(RefusalError, match=f"InvalidResourceName.*{name} is invalid.*set {property_}"):
        api("azure").checked(token, "it", {"resourceGroupName": "apes", property_: name})
