"""Google Cloud without an engine: what it makes of a request and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.simcloud.rules import Offers, RefusalError

NETWORK = "gcp:compute/network:Network"
SUBNETWORK = "gcp:compute/subnetwork:Subnetwork"
TEMPLATE = "gcp:compute/instanceTemplate:InstanceTemplate"
MANAGER = "gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager"
INSTANCE = "gcp:compute/instance:Instance"


def _network(gcp: Any, name: str = "apes", **inputs: object) -> Any:
    return gcp.create(NETWORK, name, name=name, **inputs)


def _subnetwork(gcp: Any, network: str, range_: str = "10.0.0.0/24", name: str = "nodes", **inputs: object) -> Any:
    return gcp.create(SUBNETWORK, name, name=name, network=network, ipCidrRange=range_, **inputs)


def test_ids_and_self_links_are_well_formed(api: Any) -> None:
    gcp = api("gcp")
    network = _network(gcp)
    subnetwork = _subnetwork(gcp, network.id)
    assert network.id == "projects/apes/global/networks/apes"
    assert subnetwork.id == "projects/apes/regions/europe-west4/subnetworks/nodes"
    assert subnetwork.outputs["selfLink"] == f"https://www.googleapis.com/compute/v1/{subnetwork.id}"
    assert (subnetwork.region, subnetwork.outputs["gatewayAddress"]) == ("europe-west4", "10.0.0.1")


@pytest.mark.parametrize("by", ["id", "selfLink", "name"])
def test_a_network_is_referenced_by_id_link_or_name(api: Any, by: str) -> None:
    gcp = api("gcp")
    network = _network(gcp)
    assert _subnetwork(gcp, {"id": network.id, **network.outputs}[by]).targets == (network.key,)


def test_a_name_refers_to_the_subnetwork_in_the_same_region(api: Any) -> None:
    gcp = api("gcp")
    network = _network(gcp).id
    _subnetwork(gcp, network)
    away = api("gcp", gcp.world, region="us-central1", zone="us-central1-a")
    nodes = _subnetwork(away, network, "10.1.0.0/24")
    host = away.create(INSTANCE, name="host", networkInterfaces=[{"subnetwork": "nodes"}])
    assert host.targets == (nodes.key,)


@pytest.mark.parametrize("missing", ["project", "region"])
def test_no_project_or_region_is_refused(api: Any, missing: str) -> None:
    with pytest.raises(RefusalError, match=f"{missing}: required field is not set; .*gcp:{missing}"):
        api("gcp", **{missing: ""}).checked(SUBNETWORK, "it", {"ipCidrRange": "10.0.0.0/24"})


def test_a_second_resource_with_the_same_name_is_refused(api: Any) -> None:
    gcp = api("gcp")
    _network(gcp)
    with pytest.raises(RefusalError, match="Error 409: The resource 'projects/apes/global/networks/apes' already"):
        _network(gcp)


def test_subnetworks_of_a_network_must_not_overlap_even_in_different_regions(api: Any) -> None:
    gcp = api("gcp")
    network = _network(gcp).id
    _subnetwork(gcp, network, secondaryIpRanges=[{"rangeName": "pods", "ipCidrRange": "10.64.0.0/16"}])
    away = api("gcp", gcp.world, region="us-central1")
    with pytest.raises(RefusalError, match="10.0.0.0/25 conflicts with existing subnetwork 'nodes' in region 'europe"):
        _subnetwork(away, network, "10.0.0.0/25")
    with pytest.raises(RefusalError, match="Invalid IPCidrRange: 10.64.1.0/24 conflicts"):
        _subnetwork(away, network, "10.64.1.0/24")
    with pytest.raises(RefusalError, match="Invalid IPCidrRange: 10.2.0.0/24 conflicts"):
        _subnetwork(away, network, "10.2.0.0/16", secondaryIpRanges=[{"ipCidrRange": "10.2.0.0/24"}])
    with pytest.raises(RefusalError, match="'10.2.0.0/30'. Must be a CIDR address range"):
        _subnetwork(away, network, "10.2.0.0/30")


def test_references_to_missing_resources_and_to_other_regions_are_refused(api: Any) -> None:
    gcp = api("gcp")
    with pytest.raises(RefusalError, match="Error 404: The resource 'projects/apes/global/networks/none' was not"):
        _subnetwork(gcp, "projects/apes/global/networks/none")
    subnetwork = _subnetwork(gcp, _network(gcp).id)
    away = api("gcp", gcp.world, zone="us-central1-a")
    with pytest.raises(RefusalError, match="Cross-region.*it is in europe-west4, but this is in us-central1"):
        away.create(INSTANCE, name="host", networkInterfaces=[{"subnetwork": subnetwork.id}])


@pytest.mark.parametrize("name", ["Apes", "a_b", "-a", "a-", "a" * 64, "1a"])
def test_names_follow_rfc_1035(api: Any, name: str) -> None:
    with pytest.raises(RefusalError, match=f'"name" ."{name}". doesn\'t match regexp'):
        api("gcp").checked(NETWORK, "it", {"name": name})


def test_a_resource_in_use_cannot_be_deleted(api: Any) -> None:
    gcp = api("gcp")
    template = gcp.create(TEMPLATE, name="hosts", machineType="n2-standard-4")
    link = template.outputs["selfLinkUnique"]
    group = gcp.create(MANAGER, name="hosts", baseInstanceName="host", versions=[{"instanceTemplate": link}])
    with pytest.raises(RefusalError, match=f"instance_template resource '{template.id}' is already being used by"):
        gcp.delete(template)
    gcp.delete(group)
    gcp.delete(template)


def test_deletion_protection_must_be_removed_first(api: Any) -> None:
    gcp = api("gcp")
    with pytest.raises(RefusalError, match='without setting deletion_policy="DELETE"'):
        gcp.delete(_network(gcp, deletionPolicy="PREVENT"))
    host = gcp.create(INSTANCE, name="host", deletionProtection=True)
    with pytest.raises(RefusalError, match="Cannot delete instance host: instance Deletion Protection is enabled"):
        gcp.delete(host)


def test_the_machine_type_of_a_group_must_be_offered_in_its_zones(api: Any) -> None:
    def refuse(place: Any) -> str | None:
        return f"a3-highgpu-8g is not in {place.zone}" if place.machine and place.zone == "europe-west4-b" else None

    gcp = api("gcp", offers=Offers(refuse=refuse))
    scheduling = {"onHostMaintenance": "TERMINATE"}
    template = gcp.create(TEMPLATE, name="gpus", machineType="a3-highgpu-8g", scheduling=scheduling)
    versions = [{"instanceTemplate": template.id}]
    gcp.create(MANAGER, name="near", versions=versions, distributionPolicyZones=["europe-west4-a"])
    with pytest.raises(RefusalError, match="machineType': 'a3-highgpu-8g'.*is not in europe-west4-b"):
        gcp.create(MANAGER, name="far", versions=versions, distributionPolicyZones=["europe-west4-b"])


@pytest.mark.parametrize(
    ("token", "old", "new", "paths"),
    [
        (SUBNETWORK, {"ipCidrRange": "10.0.0.0/24"}, {"ipCidrRange": "10.0.0.0/23"}, []),
        (SUBNETWORK, {"ipCidrRange": "10.0.0.0/24"}, {"ipCidrRange": "10.0.0.0/25"}, ["ipCidrRange"]),
        (SUBNETWORK, {"ipCidrRange": "10.0.0.0/24"}, {"ipCidrRange": "10.9.0.0/24"}, ["ipCidrRange"]),
        (SUBNETWORK, {"privateIpGoogleAccess": False}, {"privateIpGoogleAccess": True}, []),
        (TEMPLATE, {"labels": {"a": "1"}}, {"labels": {"a": "2"}}, ["labels.a"]),
        (MANAGER, {"targetSize": 1}, {"targetSize": 2}, []),
        (MANAGER, {"targetSizePolicies": [{"mode": "BULK"}]}, {"targetSizePolicies": [{"mode": "INDIVIDUAL"}]},
         ["targetSizePolicies[0].mode"]),
    ],
)  # fmt: skip
def test_which_changes_replace(api: Any, token: str, old: Any, new: Any, paths: list[str]) -> None:
    assert api("gcp").replaces(token, old, new) == paths
