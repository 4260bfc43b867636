"""Rook's resources, from the model and from hosts' reports."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from cluster import versions
from cluster.ceph import most_data
from cluster.places import STORAGE_RACK
from cluster.spec import Cluster
from components.ceph import alerts, render
from components.ceph.facts import judge
from components.control_plane.objects import Object


@pytest.fixture
def things(narwhal: Cluster, reports: list[dict[str, Any]]) -> tuple[Object, ...]:
    return render.objects(narwhal, judge(narwhal, reports).devices)


def of_kind(things: tuple[Object, ...], kind: str) -> dict[str, Object]:
    return {thing["metadata"]["name"]: thing for thing in things if thing["kind"] == kind}


def changed(cluster: Cluster, **ceph: Any) -> Cluster:
    site = cluster.spec.sites["sjc1"]
    assert site.ceph
    sites = {"sjc1": site.model_copy(update={"ceph": site.ceph.model_copy(update=ceph)})}
    return cluster.model_copy(update={"spec": cluster.spec.model_copy(update={"sites": sites})})


def test_ceph_gets_the_reported_disks_and_no_wildcard(things: tuple[Object, ...]) -> None:
    storage = of_kind(things, "CephCluster")["rook-ceph"]["spec"]["storage"]
    assert (storage["useAllNodes"], storage["useAllDevices"]) == (False, False)
    assert not {"deviceFilter", "devicePathFilter", "devices"} & set(storage)
    assert [node["name"] for node in storage["nodes"]] == [f"store-{n}" for n in range(1, 7)]
    devices = storage["nodes"][0]["devices"]
    assert len({device["name"] for device in devices}) == 20
    assert {device["config"]["deviceClass"] for device in devices} == {"nvme", "hdd"}
    assert all(device["name"].startswith("/dev/disk/by-id/") for device in devices)


def test_monitors_are_spread_over_racks_and_stay_on_storage_hosts(narwhal: Cluster, things: tuple[Object, ...]) -> None:
    spec = of_kind(things, "CephCluster")["rook-ceph"]["spec"]
    assert spec["mon"] == {"count": 5, "allowMultiplePerNode": False}
    (spread,) = spec["placement"]["mon"]["topologySpreadConstraints"]
    assert (spread["topologyKey"], spread["maxSkew"], spread["whenUnsatisfiable"]) == (STORAGE_RACK, 1, "DoNotSchedule")
    toleration = {"key": "storage.example.org/only", "operator": "Equal", "value": "", "effect": "NoSchedule"}
    closed = {"key": "menagerie.dev/preflight", "operator": "Equal", "value": "", "effect": "NoSchedule"}
    assert spec["placement"]["all"]["tolerations"] == [closed, toleration]
    by_host = render.objects(changed(narwhal, failure_domain="host"), {})
    (spread,) = of_kind(by_host, "CephCluster")["rook-ceph"]["spec"]["placement"]["mon"]["topologySpreadConstraints"]
    assert spread["whenUnsatisfiable"] == "ScheduleAnyway"


def test_daemons_listen_on_the_networks_of_the_spec(narwhal: Cluster, things: tuple[Object, ...]) -> None:
    network = of_kind(things, "CephCluster")["rook-ceph"]["spec"]["network"]
    assert network["addressRanges"]["cluster"] == ["10.11.0.0/24", "10.11.1.0/24", "10.11.2.0/24"]
    assert network["connections"]["requireMsgr2"] is True
    shared = of_kind(render.objects(changed(narwhal, networks=type(_ceph(narwhal).networks)()), {}), "CephCluster")
    assert set(shared["rook-ceph"]["spec"]["network"]["addressRanges"]) == {"public"}


def _ceph(cluster: Cluster) -> Any:
    return cluster.spec.sites["sjc1"].ceph


def test_every_pool_spreads_replicas_over_racks_on_one_kind_of_disk(things: tuple[Object, ...]) -> None:
    """A single pool without a device class makes Ceph stop sizing all pools."""
    pools = [thing["spec"] for thing in of_kind(things, "CephBlockPool").values()]
    for name in ("metadataPool", "dataPool"):
        pools += [
            t["spec"][name]
            for kind in ("CephFilesystem", "CephObjectStore")
            for t in of_kind(things, kind).values()
            if name in t["spec"]
        ]
    pools += of_kind(things, "CephFilesystem")["shared"]["spec"]["dataPools"]
    assert len(pools) == 8
    assert {
        (p["failureDomain"], p["replicated"]["size"], p["replicated"]["requireSafeReplicaSize"]) for p in pools
    } == {("rack", 3, True)}
    assert {p["deviceClass"] for p in pools} == {"nvme", "hdd"}


def test_each_team_has_its_own_pools_with_its_quotas(things: tuple[Object, ...]) -> None:
    tib = 2**40
    blocks = of_kind(things, "CephBlockPool")
    assert set(blocks) == {"builtin-mgr", "team-robotics"}
    assert blocks["team-robotics"]["spec"]["quotas"] == {"maxSize": str(10 * tib)}
    data = {pool["name"]: pool for pool in of_kind(things, "CephFilesystem")["shared"]["spec"]["dataPools"]}
    assert list(data) == ["default", "team-robotics", "team-language"]
    assert (data["team-language"]["deviceClass"], data["team-language"]["quotas"]) == (
        "hdd",
        {"maxSize": str(200 * tib)},
    )
    assert "quotas" not in data["default"]
    (user,) = of_kind(things, "CephObjectStoreUser").values()
    assert (user["spec"]["quotas"]["maxSize"], user["spec"]["store"]) == (str(5 * tib), "objects")


def test_classes_refer_to_the_objects_that_are_created(things: tuple[Object, ...]) -> None:
    classes, groups = of_kind(things, "StorageClass"), of_kind(things, "CephFilesystemSubVolumeGroup")
    assert set(classes) == {"block-robotics", "file-robotics", "file-language"}
    assert classes["block-robotics"]["parameters"]["pool"] in of_kind(things, "CephBlockPool")
    for team in ("robotics", "language"):
        parameters, group = classes[f"file-{team}"]["parameters"], groups[f"team-{team}"]["spec"]
        assert parameters["clusterID"] == group["clusterID"]
        assert parameters["fsName"] == group["filesystemName"] in of_kind(things, "CephFilesystem")
        assert parameters["pool"] == group["dataPoolName"] == f"shared-team-{team}"
    assert all("annotations" not in each["metadata"] for each in classes.values())


def test_the_toolbox_does_not_run_until_it_is_scaled_up(things: tuple[Object, ...]) -> None:
    assert of_kind(things, "Deployment")["ceph-toolbox"]["spec"]["replicas"] == 0


def test_images_are_of_the_pinned_release(things: tuple[Object, ...]) -> None:
    text = render.text(things)
    assert text.count(f"ceph/ceph:v{versions.CEPH}@sha256:") == 2
    assert tuple(yaml.safe_load_all(text)) == things


def test_a_cluster_without_teams_has_no_team_pools(narwhal: Cluster) -> None:
    kinds = {thing["kind"] for thing in render.objects(changed(narwhal, teams={}), {})}
    admission = {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
    assert kinds == {"Namespace", "CephCluster", "CephBlockPool", "ConfigMap", "Deployment"} | admission


def test_a_cluster_without_ceph_is_refused(lab: Cluster) -> None:
    with pytest.raises(ValueError, match="lab has no ceph at any site"):
        render.objects(lab, {})


def test_alerts_say_what_to_do_and_cover_the_quotas(narwhal: Cluster, things: tuple[Object, ...]) -> None:
    (rules,) = json.loads(of_kind(things, "ConfigMap")["ceph-alerts"]["data"]["ceph.rules.json"])["groups"]
    names = [rule["alert"] for rule in rules["rules"]]
    assert len(names) == len(set(names))
    assert {"CephTeamNearQuota", "CephTeamAtQuota", "CephMonitorDown", "CephFull"} <= set(names)
    assert all(
        rule["annotations"]["description"] and rule["labels"]["severity"] in ("warning", "critical")
        for rule in rules["rules"]
    )
    assert all(rule["expr"].count("(") == rule["expr"].count(")") for rule in rules["rules"])
    assert alerts.of_teams(changed(narwhal, teams={}).spec.sites["sjc1"].ceph) == ()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("capacities", "replicas", "expected"),
    [
        ([10, 10, 10], 3, 10),
        ([10, 10, 10, 10], 3, 13),
        ([100, 10, 10], 3, 10),
        ([100, 10, 10], 2, 20),
        ([100, 100, 10], 2, 105),
        ([10, 10], 3, 0),
        ([7], 1, 7),
        ([], 1, 0),
    ],
)
def test_capacity_depends_on_the_smaller_domains(capacities: list[int], replicas: int, expected: int) -> None:
    assert most_data(capacities, replicas) == expected
