"""What `status` makes of the answers of the API server, the load balancer and the etcds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cluster import preflight
from cluster.load import load_cluster
from cluster.spec import Cluster
from control_plane.manifests import objects
from network import addresses
from operations import drain, status
from operations.etcd import EtcdError
from operations.status import ADDONS, Item, Status, balancer_states, not_well, read_status
from tests.operations.conftest import FakeAccess, FakeServer, outputs

AWS = Path(__file__).parents[2] / "docs" / "examples" / "aws-small.yaml"
CSV = (
    "# pxname,svname,status,weight\n"
    "api,FRONTEND,OPEN,\n"
    "api,api-1,UP,1\n"
    "api,api-2,UP,1\n"
    "api,BACKEND,UP,1\n"
    "konnectivity,api-1,DOWN,1\n"
)
READYZ = "[+]ping ok\n[+]etcd ok\n[+]etcd-readiness ok\n[+]etcd-override-0 ok\n[+]etcd-override-readiness-0 ok\nreadyz check passed\n"
DAEMONS = "/apis/apps/v1/namespaces/kube-system/daemonsets"
DEPLOYMENTS = "/apis/apps/v1/namespaces/kube-system/deployments"


def node(name: str) -> dict[str, Any]:
    ready = {"type": "Ready", "status": "True", "reason": "", "message": ""}
    info = dict.fromkeys(
        ("architecture", "bootID", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion", "kubeletVersion",
         "machineID", "operatingSystem", "osImage", "systemUUID"), "v1"
    )  # fmt: skip
    return {"metadata": {"name": name}, "status": {"conditions": [ready], "nodeInfo": info}}


def daemon(name: str, wanted: int = 3, ready: int = 3, generation: int = 1, seen: int | None = 1) -> dict[str, Any]:
    counts = {
        "desiredNumberScheduled": wanted,
        "numberReady": ready,
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
    }
    spec = {"selector": {}, "template": {}}
    metadata = {"name": name, "generation": generation}
    return {"metadata": metadata, "spec": spec, "status": {**counts, "observedGeneration": seen}}


def deployment(name: str, wanted: int = 2, ready: int = 2) -> dict[str, Any]:
    spec = {"replicas": wanted, "selector": {}, "template": {}}
    counts = {"readyReplicas": ready or None, "observedGeneration": 1}
    return {"metadata": {"name": name, "generation": 1}, "spec": spec, "status": counts}


class Etcds:
    """Stands for EtcdClient: role -> what `ailments` says, or the error that it raises."""

    ailments_by_role: dict[str, dict[str, str] | EtcdError]

    def __init__(self, _: object, role: str) -> None:
        self._role = role

    def ailments(self) -> dict[str, str]:
        found = self.ailments_by_role[self._role]
        if isinstance(found, EtcdError):
            raise found
        return found


@pytest.fixture
def access(server: FakeServer, lab: Cluster, monkeypatch: pytest.MonkeyPatch) -> FakeAccess:
    """A cluster that is well."""
    server.answers = {
        "/;csv": CSV,
        "/readyz": READYZ,
        "/api/v1/nodes": {"items": [node(host.name) for _, host in lab.host_list()]},
        DAEMONS: {"items": [daemon("kube-proxy"), daemon("konnectivity-agent")]},
        DEPLOYMENTS: {"items": [deployment("coredns")]},
    }
    found = FakeAccess(outputs(f"{server.url}/;csv"), server.url)
    well = {role: {member.name: "" for member in etcd.members} for role, etcd in found.outputs.etcds.items()}
    monkeypatch.setattr(Etcds, "ailments_by_role", well, raising=False)
    monkeypatch.setattr(status, "EtcdClient", Etcds)
    return found


def wrong(cluster: Cluster, access: FakeAccess) -> dict[str, str]:
    return {item.name: item.detail for item in read_status(cluster, access).items if not item.ok}


def test_a_cluster_with_all_its_parts_is_well(lab: Cluster, access: FakeAccess) -> None:
    found = read_status(lab, access)
    assert found.ok
    assert not_well(lab, access) == ""
    groups = list(dict.fromkeys(item.group for item in found.items))
    assert groups == ["API servers", "etcds", "api", "nodes", "add-ons"]
    assert len(found.items) == 2 + 6 + 2 + 1 + 3 + 3


def test_a_driver_of_volumes_that_is_gone_makes_it_not_well(access: FakeAccess, server: FakeServer) -> None:
    storage = load_cluster(AWS)
    server.answers[DAEMONS.replace("kube-system", "csi")] = {"items": [daemon("ebs-node")]}
    server.answers[DEPLOYMENTS.replace("kube-system", "csi")] = {"items": []}
    found = {item.name: item for item in read_status(storage, access).items if item.group == "add-ons"}
    assert found["ebs-node"].ok
    assert not found["ebs-controller"].ok


def test_a_dead_member_makes_it_not_well_although_the_api_server_is_ready(lab: Cluster, access: FakeAccess) -> None:
    Etcds.ailments_by_role["main"] = {"etcd-main-1": "context deadline exceeded", "etcd-main-2": "", "etcd-main-3": ""}
    assert wrong(lab, access) == {"etcd-main-1": "member of main, context deadline exceeded"}
    assert not_well(lab, access).startswith("etcd-main-1: member of main")


def test_an_etcd_that_can_not_be_asked_is_an_item_and_the_rest_is_still_told(lab: Cluster, access: FakeAccess) -> None:
    Etcds.ailments_by_role["events"] = EtcdError("etcd events: no answer within 9 s")
    assert wrong(lab, access) == {"members of events": "etcd events: no answer within 9 s"}


def test_an_api_server_that_the_load_balancer_does_not_list_is_not_well(
    lab: Cluster, access: FakeAccess, server: FakeServer
) -> None:
    server.answers["/;csv"] = CSV.replace("api,api-2,UP,1\n", "")
    assert balancer_states(access.outputs) == {"api-1": "UP", "api-2": "absent"}
    assert wrong(lab, access) == {"api-2": "10.77.0.12, load balancer says absent"}


@pytest.mark.parametrize("page", ["", "<html>no such page</html>"])
def test_without_statistics_every_api_server_is_absent(access: FakeAccess, server: FakeServer, page: str) -> None:
    server.answers["/;csv"] = page
    assert set(balancer_states(access.outputs).values()) == {"absent"}


@pytest.mark.parametrize(
    ("daemons", "deployments", "name", "detail"),
    [
        ([daemon("kube-proxy")], [deployment("coredns")], "konnectivity-agent", "missing"),
        ([daemon("konnectivity-agent")], [deployment("coredns")], "kube-proxy", "missing"),
        ([daemon("kube-proxy"), daemon("konnectivity-agent")], [], "coredns", "missing"),
        ([daemon("kube-proxy"), daemon("konnectivity-agent")], [deployment("coredns", 0, 0)], "coredns", "0 of 0"),
        ([daemon("kube-proxy", 0, 0), daemon("konnectivity-agent")], [deployment("coredns")], "kube-proxy", "0 of 0"),
        ([daemon("kube-proxy", 3, 2), daemon("konnectivity-agent")], [deployment("coredns")], "kube-proxy", "2 of 3"),
        (
            [daemon("kube-proxy", seen=None), daemon("konnectivity-agent")],
            [deployment("coredns")],
            "kube-proxy",
            "not yet counted",
        ),
        (
            [daemon("kube-proxy", generation=2), daemon("konnectivity-agent")],
            [deployment("coredns")],
            "kube-proxy",
            "not yet counted",
        ),
    ],
)
def test_an_add_on_is_well_only_when_it_is_there_and_its_pods_are_counted_and_ready(
    lab: Cluster, access: FakeAccess, server: FakeServer, daemons: Any, deployments: Any, name: str, detail: str
) -> None:
    server.answers[DAEMONS], server.answers[DEPLOYMENTS] = {"items": daemons}, {"items": deployments}
    found = wrong(lab, access)
    assert list(found) == [name]
    assert detail in found[name]


def test_what_others_run_in_kube_system_may_want_no_pods_but_not_lack_some(
    lab: Cluster, access: FakeAccess, server: FakeServer
) -> None:
    server.answers[DAEMONS]["items"] += [daemon("gpu-plugin", 0, 0), daemon("exporter", 3, 1)]
    assert wrong(lab, access) == {"exporter": "1 of 3 pods ready"}


def test_everything_that_the_cluster_is_given_with_pods_is_an_expected_add_on(lab: Cluster) -> None:
    given = objects(lab, addresses.plan(lab))
    assert {thing["metadata"]["name"] for thing in given if "template" in thing.get("spec", {})} <= set(ADDONS)


def test_a_silent_api_is_asked_once_and_the_other_parts_are_still_told(
    lab: Cluster, access: FakeAccess, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status, "ANSWER_S", 0.2)
    access.outputs = outputs()
    server.silent.set()
    items = read_status(lab, access).items
    assert [(item.name, item.detail) for item in items if not item.ok] == [("API", "no answer: ReadTimeoutError")]
    assert len(items) == 1 + 6
    assert server.asked == ["/readyz"]


def test_an_api_that_stops_answering_is_not_asked_again(lab: Cluster, access: FakeAccess, server: FakeServer) -> None:
    del server.answers["/api/v1/nodes"]
    assert wrong(lab, access) == {"API": "404 Not Found"}
    assert DAEMONS not in server.asked


def test_a_check_of_the_api_server_that_fails_is_named(lab: Cluster, access: FakeAccess, server: FakeServer) -> None:
    server.answers["/readyz"] = READYZ.replace("[+]ping ok", "[-]ping failed: reason withheld")
    assert wrong(lab, access) == {"readyz": "failing: ping"}


def test_one_item_that_is_not_ok_makes_the_status_not_ok() -> None:
    good, bad = Item("nodes", "a", True, "Ready"), Item("nodes", "b", False, "NotReady")
    assert Status("lab", "", (good,)).ok
    assert not Status("lab", "", (good, bad)).ok


def test_the_json_of_a_status_holds_every_item() -> None:
    item = Item("nodes", "a", True, "Ready")
    assert Status("lab", "https://x", (item,)).to_json()["items"] == [
        {"group": "nodes", "name": "a", "ok": True, "detail": "Ready"}
    ]


def in_region(name: str, address: str) -> dict[str, Any]:
    made = node(name)
    made["metadata"]["labels"] = {"topology.kubernetes.io/zone": "2"}
    made["status"]["addresses"] = [{"type": "InternalIP", "address": address}]
    return made


def test_workers_in_the_region_are_known_by_their_address_and_counted(
    build: Callable[..., Cluster], server: FakeServer, access: FakeAccess
) -> None:
    """The cloud names them, so no spec lists them."""
    cluster = build(
        {
            "control_plane": {"cloud": "azure", "region": "eastus2"},
            "network": {"nodes": "10.77.0.0/16"},
            "pools": {"cpu": {"machine": "Standard_D16ds_v5", "min": 2, "max": 4}},
            "storage": {"block": False},
        }
    )
    listed = server.answers["/api/v1/nodes"]["items"]
    server.answers["/api/v1/nodes"] = {"items": [*listed, in_region("cpu-7", "10.77.128.9")]}
    assert wrong(cluster, access) == {"workers in the region": "1 Ready, of 2 at least"}
    strangers = [in_region("cpu-8", "10.77.200.9"), in_region("stranger", "10.77.0.70")]
    server.answers["/api/v1/nodes"] = {"items": [*listed, in_region("cpu-7", "10.77.128.9"), *strangers]}
    assert wrong(cluster, access) == {"stranger": "Ready, v1, not in the spec"}


def test_a_node_that_takes_no_work_is_not_well_and_says_why(
    lab: Cluster, access: FakeAccess, server: FakeServer
) -> None:
    first, second, third = server.answers["/api/v1/nodes"]["items"]
    first["spec"] = {"taints": [{"key": preflight.KEY, "effect": "NoSchedule"}]}
    told = {
        "type": preflight.CONDITION,
        "status": "False",
        "reason": "ClockSkewed",
        "message": "the clock is 9 s ahead",
    }
    first["status"]["conditions"].append(told)
    note = {"type": preflight.CONDITION, "status": "True", "reason": "AsExpected"}
    second["status"]["conditions"].append({**note, "message": "GPU 0000:5a:00: Xid 63: keep an eye on it"})
    third["status"]["conditions"].append({**note, "message": "as expected of dgx-h100"})
    found = {item.name: item for item in read_status(lab, access).items if item.group == "nodes"}
    details = [found[each["metadata"]["name"]] for each in (first, second, third)]
    assert [item.ok for item in details] == [False, True, True]
    assert details[0].detail.endswith("no work yet: its preflight says ClockSkewed: the clock is 9 s ahead")
    assert details[1].detail.endswith(", preflight: GPU 0000:5a:00: Xid 63: keep an eye on it")
    assert "preflight" not in details[2].detail


def test_a_node_that_was_taken_out_of_service_says_by_whom(
    lab: Cluster, access: FakeAccess, server: FakeServer
) -> None:
    first, second, third = server.answers["/api/v1/nodes"]["items"]
    mark = {"by": "reboot", "why": "new kernel", "since": "2026-11-21T20:00:00Z"}
    first["metadata"]["annotations"] = {drain.MARK: json.dumps(mark)}
    first["spec"] = second["spec"] = {"unschedulable": True}
    found = {item.name: item for item in read_status(lab, access).items if item.group == "nodes"}
    details = [found[each["metadata"]["name"]] for each in (first, second, third)]
    assert [item.ok for item in details] == [True, True, True]
    assert details[0].detail.endswith(", out of service by reboot since 2026-11-21T20:00:00Z: new kernel")
    assert details[1].detail.endswith(", cordoned")
    assert "cordoned" not in details[2].detail


def test_where_the_spec_has_gpus_their_daemons_are_expected(build: Callable[..., Cluster], access: FakeAccess) -> None:
    own = build({"pools": {"workers": {"hardware": "dgx-h100"}}})
    assert set(wrong(own, access)) == {"nvidia-device-plugin", "dcgm-exporter"}
