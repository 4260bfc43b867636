"""Quotas of vCPUs on Azure and Google Cloud; tests/simcloud/test_aws_machines.py has the one of AWS."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.simcloud.rules import Offers, RefusalError
from sandbox.simcloud.simulation import SimulatedCloud
from tests.simcloud.azure_support import Estate
from tests.simcloud.gcp_support import Project


def vcpus(quota: int) -> Offers:
    return Offers(vcpus=lambda cloud, region: quota)


def limited(estate: Estate, quota: int) -> None:
    estate.api.simulation = SimulatedCloud(estate.api.simulation.cloud, estate.api.world, vcpus(quota))


def test_azure_counts_machines_and_the_capacity_of_scale_sets(api: Any) -> None:
    estate = Estate(api("azure"))
    limited(estate, 100)
    with pytest.raises(
        RefusalError,
        match=r"OperationNotAllowed.*Total Regional Cores quota.*Current Limit: 100, Current Usage: \d+, Add",
    ):
        estate.update("scale set", {"sku.capacity": 50})
    limited(estate, 1000)
    estate.update("scale set", {"sku.capacity": 50})
    limited(estate, 100)
    spot = {"virtualMachineProfile.priority": "Spot", "virtualMachineProfile.evictionPolicy": "Delete"}
    estate.recreate("scale set", {**spot, "sku.capacity": 50})


def test_google_cloud_counts_machines_and_a_change_counts_once(api: Any) -> None:
    project = Project(api("gcp", offers=vcpus(8)))
    first, interface = project.make("instance"), [{"subnetwork": project["subnetwork"].id}]
    with pytest.raises(
        RefusalError, match="Quota 'CPUS' exceeded. Limit: 8.0 in region europe-west4.*4 are in use and 8 more"
    ):
        project.make("instance", name="other", machineType="n2-standard-8", networkInterfaces=interface)
    project.api.update(first, machineType="n2-standard-8", allowStoppingForUpdate=True)
    with pytest.raises(RefusalError, match="8 are in use and 2 more"):
        project.make("instance", name="other", machineType="n2-standard-2", networkInterfaces=interface)
