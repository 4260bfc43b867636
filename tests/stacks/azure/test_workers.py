"""Pools in the region, as scale sets."""

from __future__ import annotations

import pytest

from sandbox.simcloud.values import plain
from stacks.azure.tags import scale_set_name

LONG = "h100-machines-of-one-fast-network-and-of-a-rather-long-name-too"


@pytest.fixture
def pool(wide):
    """pool(name): its scale set."""
    return lambda name: plain(wide.called("compute:VirtualMachineScaleSet", scale_set_name(name)).inputs)


def test_every_pool_in_the_region_is_a_scale_set_starting_at_its_minimum(wide, pool):
    pools = {name: pool_ for name, pool_ in wide.cluster.spec.pools.items() if pool_.site is None}
    assert len(wide.records("compute:VirtualMachineScaleSet")) == len(pools) + 1
    for name, spec in pools.items():
        scale_set = pool(name)
        assert (scale_set["sku"]["name"], scale_set["sku"]["capacity"]) == (spec.machine, spec.min)
        assert scale_set["zones"] == list(map(str, spec.zones or wide.cluster.spec.control_plane.zones))
        # A change of the model must not end the jobs on a machine.
        assert scale_set["upgradePolicy"] == {"mode": "Manual"}


def test_an_update_leaves_the_size_of_pools_to_the_autoscaler(wide):
    kind = "azure-native:compute:VirtualMachineScaleSet"
    groups = {urn.rpartition("::")[2]: resource for urn, resource in wide.state().items() if resource["type"] == kind}
    for name, pool in wide.cluster.spec.pools.items():
        if pool.site is None:
            assert groups[scale_set_name(name)]["ignoreChanges"] == ["sku.capacity"]


def test_spot_machines_are_evicted_only_when_azure_needs_capacity(pool):
    profile = pool("spot")["virtualMachineProfile"]
    assert (profile["priority"], profile["evictionPolicy"]) == ("Spot", "Delete")
    assert profile["billingProfile"] == {"maxPrice": -1}
    assert "priority" not in pool("cpu")["virtualMachineProfile"]


def test_reserved_machines_name_their_reservation(wide, pool):
    group = pool("reserved")["virtualMachineProfile"]["capacityReservation"]["capacityReservationGroup"]["id"]
    assert group == wide.cluster.spec.pools["reserved"].reservation


def test_machines_of_one_fast_network_are_in_one_placement_group(pool):
    assert {name: pool(name)["singlePlacementGroup"] for name in ("cpu", LONG)} == {"cpu": False, LONG: True}


def test_compact_machines_are_in_a_proximity_group_of_their_zone(wide, pool):
    (near,) = wide.records("compute:ProximityPlacementGroup")
    assert pool("a100")["proximityPlacementGroup"]["id"] == near.id
    assert (near.inputs["zones"], near.inputs["intent"]["vmSizes"]) == (["1"], ["Standard_ND96amsr_A100_v4"])
    assert "proximityPlacementGroup" not in pool("cpu")


def test_spread_machines_are_in_five_fault_domains(pool):
    assert {name: pool(name)["platformFaultDomainCount"] for name in ("cpu", "apart")} == {"cpu": 1, "apart": 5}


def test_interfaces_are_fast_and_disks_fit_the_size(pool):
    for name in ("cpu", LONG):
        (interface,) = pool(name)["virtualMachineProfile"]["networkProfile"]["networkInterfaceConfigurations"]
        assert interface["enableAcceleratedNetworking"] is True
        assert interface["ipConfigurations"][0]["subnet"]["id"].endswith("/subnets/workers")
    disks = {name: pool(name)["virtualMachineProfile"]["storageProfile"]["osDisk"] for name in ("cpu", "spot", LONG)}
    assert {name: disk["managedDisk"]["storageAccountType"] for name, disk in disks.items()} == {
        "cpu": "StandardSSD_LRS",
        "spot": "Premium_LRS",
        LONG: "Premium_LRS",
    }
    assert disks[LONG]["diskSizeGB"] == 512


def test_images_are_those_of_the_spec_or_debian(wide, pool):
    images = {
        name: pool(name)["virtualMachineProfile"]["storageProfile"]["imageReference"] for name in ("cpu", LONG, "a100")
    }
    assert images["cpu"] == {"publisher": "Debian", "offer": "debian-12", "sku": "12-gen2", "version": "latest"}
    assert images[LONG]["sku"] == "2204"
    assert images["a100"] == {"id": wide.cluster.spec.pools["a100"].image}


def test_the_autoscaler_finds_pools_and_knows_their_nodes(wide, pool):
    tags = pool(LONG)["tags"]
    template = "k8s.io_cluster-autoscaler_node-template"
    assert (tags["cluster-autoscaler-enabled"], tags["cluster-autoscaler-name"]) == ("true", wide.cluster.name)
    assert (tags["min"], tags["max"]) == ("0", "64")
    assert tags[f"{template}_label_openai.org_location"] == "azure-eastus2-az2"
    assert tags[f"{template}_label_openai.org_gpu~2kind"] == "h100"
    assert tags[f"{template}_label_menagerie.dev_gpu-kind"] == "NVIDIA-H100-80GB-HBM3"
    assert tags[f"{template}_taint_openai.org_gpu"] == "h100:NoSchedule"


def test_names_of_hosts_differ_between_pools_and_are_short(wide, pool):
    names = [name for name, pool_ in wide.cluster.spec.pools.items() if pool_.site is None]
    prefixes = [pool(name)["virtualMachineProfile"]["osProfile"]["computerNamePrefix"] for name in names]
    assert len(set(prefixes)) == len(prefixes)
    assert max(map(len, prefixes)) <= 15
