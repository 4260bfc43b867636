"""What Azure refuses to delete, because something uses it or a lock protects it."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.simcloud.identifiers import guid
from sandbox.simcloud.rules import RefusalError
from tests.simcloud.azure_places import DATA_DISK, GROUP, INTERFACE, NET, ROLE, VAULT
from tests.simcloud.azure_support import ESTATE, Estate

# Key -> Azure's message if something uses it.
NEEDED = {
    "address": "PublicIPAddressCannotBeDeleted.*still allocated to resource .*natGateways/nat",
    "nat": "InUseNatGatewayCannotBeDeleted.*subnets/nodes",
    "routes": "InUseRouteTableCannotBeDeleted",
    "rules": "InUseNetworkSecurityGroupCannotBeDeleted.*subnets/nodes",
    "subnet": "InUseSubnetCannotBeDeleted.*subnets/nodes is in use",
    "network": "InUseSubnetCannotBeDeleted|in use",
    "gateway subnet": "InUseSubnetCannotBeDeleted.*virtualNetworkGateways/gateway",
    "balancer": "LoadBalancerInUseByVirtualMachineScaleSet.*virtualMachineScaleSets/api",
    "interface": "NicInUse.*is used by existing resource .*virtualMachines/etcd-1",
    "encryption": "Disk encryption set .* cannot be deleted: it is in use by",
    "gateway": "VirtualNetworkGatewayCannotBeDeleted.*connections/sjc-1",
    "site": "in use by .*connections/sjc-1",
    "zone": "CannotDeleteResource.*nested resources exist.*virtualNetworkLinks/network",
}


@pytest.fixture
def estate(api: Any) -> Estate:
    return Estate(api("azure"))


@pytest.mark.parametrize("key", NEEDED)
def test_a_resource_in_use_cannot_be_deleted(estate: Estate, key: str) -> None:
    estate.without("lock")
    with pytest.raises(RefusalError, match=NEEDED[key]):
        estate.api.delete(estate[key])


def test_an_attached_disk_cannot_be_deleted(estate: Estate) -> None:
    estate.without("lock")
    with pytest.raises(RefusalError, match="Disk .*disks/etcd-1 is attached to VM .*virtualMachines/etcd-1"):
        estate.api.delete(estate["disk"])


def test_a_placement_group_with_a_machine_cannot_be_deleted(estate: Estate) -> None:
    estate.update("machine", {"proximityPlacementGroup": {"id": estate["proximity"].id}})
    with pytest.raises(RefusalError, match="Proximity Placement Group .* cannot be deleted"):
        estate.api.delete(estate["proximity"])


def test_an_assigned_custom_role_cannot_be_deleted_and_its_name_is_unique_in_the_tenant(estate: Estate) -> None:
    role = f"{ROLE.rpartition('/')[0]}/{estate['own role'].inputs['roleDefinitionId']}"
    given = estate.twin("host's role", None, roleDefinitionId=role)
    with pytest.raises(RefusalError, match="RoleDefinitionHasAssignments"):
        estate.api.delete(estate["own role"])
    with pytest.raises(RefusalError, match="RoleDefinitionWithSameNameExists"):
        estate.twin("own role", guid("another"))
    estate.api.delete(given)
    estate.api.delete(estate["own role"])


def test_an_identity_can_be_deleted_while_machines_use_it(estate: Estate) -> None:
    estate.api.delete(estate["identity"])
    assert estate["identity"] not in list(estate.api.world)


def test_everything_can_be_deleted_in_the_order_of_a_destroy(estate: Estate) -> None:
    for key in reversed(ESTATE):
        estate.api.delete(estate[key])
    assert len(estate.api.world) == 0


def test_a_lock_protects_what_is_below_and_above_it(estate: Estate) -> None:
    with pytest.raises(RefusalError, match=rf"ScopeLocked.*following scope\(s\) are locked: '{DATA_DISK}'"):
        estate.api.delete(estate["disk"])
    with pytest.raises(RefusalError, match=rf"ScopeLocked.*The scope '{GROUP}' cannot perform delete"):
        estate.api.delete(estate["group"])
    estate.twin("lock", "all", scope=GROUP)
    with pytest.raises(RefusalError, match=f"ScopeLocked.*are locked: '{GROUP}'"):
        estate.api.delete(estate["reservations"])


def test_a_lock_does_not_apply_to_another_name_with_the_same_prefix(estate: Estate) -> None:
    twin = estate.twin("disk", "etcd-11")
    estate.api.delete(twin)
    assert twin not in list(estate.api.world)


def test_a_lock_can_be_deleted_and_then_everything_else(estate: Estate) -> None:
    estate.api.delete(estate["lock"])
    estate.api.delete(estate["group"])
    assert [record.id for record in estate.api.world] == [estate["flow log"].id]


def test_a_read_only_lock_refuses_changes_too(estate: Estate) -> None:
    estate.twin("lock", "frozen", scope=f"{NET}/networkSecurityGroups/rules", level="ReadOnly")
    with pytest.raises(RefusalError, match="ScopeLocked.*cannot perform write operation"):
        estate.update("rules", {"tags": {"a": "b"}})
    assert estate.update("routes", {"tags": {"a": "b"}})


def test_a_deletion_lock_allows_changes(estate: Estate) -> None:
    assert estate.update("disk", {"diskIOPSReadWrite": 6000}).outputs["diskIOPSReadWrite"] == 6000


def test_a_lock_does_not_protect_secrets_because_the_vault_s_own_api_deletes_them(estate: Estate) -> None:
    estate.twin("lock", "vault", scope=VAULT)
    estate.api.delete(estate["secret"])
    with pytest.raises(RefusalError, match="ScopeLocked"):
        estate.api.delete(estate["vault"])


def test_a_type_without_rules_is_locked_like_the_others(estate: Estate) -> None:
    thing = estate.api.create("azure-native:dns:Zone", resourceGroupName="apes")
    estate.twin("lock", "all", scope=GROUP)
    with pytest.raises(RefusalError, match="ScopeLocked"):
        estate.api.delete(thing)


def test_an_interface_can_be_deleted_after_its_machine(estate: Estate) -> None:
    estate.api.delete(estate["machine"])
    estate.api.delete(estate["interface"])
    assert INTERFACE not in [record.id for record in estate.api.world]
