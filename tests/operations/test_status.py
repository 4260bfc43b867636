"""What `status` makes of the responses of the API server, the load balancer and the etcds."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from clients.agent_client import AgentError
from clients.etcd_client import EtcdError, MemberStatus
from cluster import preflight, versions
from cluster.errors import RefusedError
from cluster.load import load_cluster
from cluster.spec import Cluster
from components.control_plane.manifests import objects
from etcd.members import members
from network import addresses
from operations import drain
from operations.audit_logs import Newest
from operations.backups import BackupState
from operations.etcds.look import EtcdAccess, reach
from operations.record import one_operation, store
from operations.status import ADDONS, Status, StatusItem, etcds, model, read, work
from operations.status.balancer import balancer_states, servers_down
from operations.status.fleet import read_fleet
from operations.status.metrics import NODES
from operations.status.read import read_status, unhealthy_parts
from operations.status.nodes import LISTED
from operations.status.versions import skew
from stacks.certificates import new_authority
from tests.operations.conftest import FakeAccess, FakeServer, outputs

PUBLIC_ALONE = Path(__file__).parents[1] / "specs" / "invalid-PUB-002-public-alone.yaml"
AWS = Path(__file__).parents[2] / "examples" / "aws-small" / "cluster.yaml"
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
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
DEPLOYMENTS = "/apis/apps/v1/namespaces/kube-system/deployments"


VERSION = f"v{versions.KUBERNETES}"


def node(name: str) -> dict[str, Any]:
    ready = {"type": "Ready", "status": "True", "reason": "", "message": ""}
    info = dict.fromkeys(
        ("architecture", "bootID", "kernelVersion", "kubeProxyVersion", "kubeletVersion",
         "machineID", "operatingSystem", "osImage", "systemUUID"), VERSION
    )  # fmt: skip
    info["containerRuntimeVersion"] = f"containerd://{versions.CONTAINERD}"
    return {"metadata": {"name": name}, "status": {"conditions": [ready], "nodeInfo": info}}


def daemon(
    name: str, desired: int = 3, ready: int = 3, generation: int = 1, observed: int | None = 1
) -> dict[str, Any]:
    counts = {
        "desiredNumberScheduled": desired,
        "numberReady": ready,
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
    }
    spec = {"selector": {}, "template": {}}
    metadata = {"name": name, "generation": generation}
    return {"metadata": metadata, "spec": spec, "status": {**counts, "observedGeneration": observed}}


def deployment(name: str, replicas: int = 2, ready: int = 2) -> dict[str, Any]:
    spec = {"replicas": replicas, "selector": {}, "template": {}}
    counts = {"readyReplicas": ready or None, "observedGeneration": 1}
    return {"metadata": {"name": name, "generation": 1}, "spec": spec, "status": counts}


METRICS_SERVER = deployment("metrics-server")


def lease(host: str) -> dict[str, Any]:
    """Return the lease of an API server that was renewed just now."""
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    metadata = {"name": host, "labels": {"kubernetes.io/hostname": host}, "creationTimestamp": now}
    return {"metadata": metadata, "spec": {"renewTime": now}}


MEMBER = MemberStatus("", "", "", 1, 4, "3.6.14", 30 * 2**20, 12 * 2**20, 8 * 2**30, False, ())


class Etcds:
    """Substitute for EtcdClient: role -> the result of `ailments`, or the error that it raises."""

    ailments_by_role: dict[str, dict[str, str] | EtcdError]
    changes: dict[str, dict[str, Any]]

    def __init__(self, _: object, role: str) -> None:
        self._role = role

    def ailments(self) -> dict[str, str]:
        answer = self.ailments_by_role[self._role]
        if isinstance(answer, EtcdError):
            raise answer
        return answer

    def statuses(self) -> dict[str, MemberStatus]:
        """Return the statuses of healthy members; the first one is the leader."""
        well = [name for name, ailment in self.ailments().items() if not ailment]
        return {name: replace(MEMBER, **{"id": name, "leader": well[0], **self.changes.get(name, {})}) for name in well}


@pytest.fixture
def access(server: FakeServer, lab: Cluster, monkeypatch: pytest.MonkeyPatch) -> FakeAccess:
    """A healthy cluster."""
    server.answers = {
        "/;csv": CSV,
        "/readyz": READYZ,
        "/version": {"gitVersion": VERSION},
        "/api/v1/nodes": {"items": [node(host.name) for _, host in lab.host_list()]},
        DAEMONS: {"items": [daemon("kube-proxy"), daemon("konnectivity-agent")]},
        DEPLOYMENTS: {"items": [deployment("coredns"), METRICS_SERVER]},
        NODES: {"items": [node(host.name) for _, host in lab.host_list()]},
        REQUESTS: {"items": []},
        LEASES: {"items": [lease("api-1"), lease("api-2")]},
    }
    now = datetime.now(UTC)
    monkeypatch.setattr(work, "newest", lambda *_: dict.fromkeys(("api-1", "api-2"), Newest(now, 0)))
    fake = FakeAccess(outputs(f"{server.url}/;csv"), server.url)
    well = {role: {member.name: "" for member in etcd.members} for role, etcd in fake.outputs.etcds.items()}
    monkeypatch.setattr(Etcds, "ailments_by_role", well, raising=False)
    monkeypatch.setattr(Etcds, "changes", {}, raising=False)
    monkeypatch.setattr(read, "EtcdClient", Etcds)
    monkeypatch.setattr(read, "certificates", lambda _: iter(()))
    monkeypatch.setattr(read, "backups", lambda *_: iter(()))
    return fake


def wrong(cluster: Cluster, access: FakeAccess) -> dict[str, str]:
    return {item.name: item.detail for item in read_status(cluster, access).items if not item.ok}


def test_a_cluster_with_all_its_parts_is_healthy(lab: Cluster, access: FakeAccess) -> None:
    status = read_status(lab, access)
    assert status.ok
    assert unhealthy_parts(lab, access) == ""
    groups = list(dict.fromkeys(item.group for item in status.items))
    assert groups == [
        "API servers",
        "etcds",
        "api",
        "nodes",
        "add-ons",
        "metrics",
        "versions",
        "audit logs",
        "operation",
    ]
    assert len(status.items) == 2 + (6 + 2) + 2 + 1 + 3 + 4 + 1 + 3 + 2 + 1
    assert [item.help for item in status.items] == [""] * len(status.items)


def test_a_member_s_host_with_another_payload_is_a_line_with_the_command_and_still_ok(
    lab: Cluster, access: FakeAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha256 = hashlib.sha256(b"{}").hexdigest()
    states = {
        "etcd-main-1": {"payload": {"sha256": "0" * 64, "whole": True}, "fsync_p99_s": 0.0021, "leader_changes": 3},
        "etcd-main-2": {"payload": {"sha256": sha256, "whole": False}, "fsync_p99_s": 0.022, "leader_changes": 4},
        "etcd-main-3": {"payload": {"sha256": sha256, "whole": True}},
        "etcd-events-1": {},  # an older agent
    }

    def asked(*_: object) -> Iterator[Any]:
        return etcds.by_agents(lab, replace(access, etcd_payloads=dict.fromkeys(states, "{}")))  # type: ignore[arg-type]

    class Agent:
        def __init__(self, name: str) -> None:
            self.name = name

        def state(self) -> dict[str, Any]:
            if self.name in states:
                return states[self.name]
            raise AgentError("no answer")

    def reach(cluster: Cluster, _: object, role: Any) -> EtcdAccess:
        everyone = members(cluster, role, addresses.plan(cluster))
        return EtcdAccess(cluster, role, None, {each.name: Agent(each.name) for each in everyone}, everyone)  # type: ignore[arg-type, misc]

    monkeypatch.setattr(etcds, "reach", reach)
    monkeypatch.setattr(read, "by_agents", asked)
    access.etcd_payloads = {"etcd-main-1": "{}"}
    status = read_status(lab, access)
    assert status.ok
    lines = {item.name: item.detail for item in status.items if item.name.endswith(", payload")}
    assert set(lines) == {"etcd-main-1, payload", "etcd-main-2, payload"}
    assert all(line.endswith(": ./menagerie etcd roll lab") for line in lines.values())
    assert {item.name: item.detail for item in status.items if item.name.endswith(", disk")} == {
        "etcd-main-1, disk": "fsync p99 2.1 ms; 3 leader changes since it started",
        "etcd-main-2, disk": "fsync p99 22.0 ms, slow: ./menagerie status lab etcd; 4 leader changes since it started",
    }


def test_a_spec_that_changed_since_it_was_built_is_reported_with_the_command(
    lab: Cluster, access: FakeAccess, build: Callable[..., Cluster]
) -> None:
    access.outputs = access.outputs.model_copy(update={"spec_sha256": lab.digest})

    def lines(cluster: Cluster) -> list[tuple[bool, str]]:
        return [(item.ok, item.detail) for item in read_status(cluster, access).items if item.group == "spec"]

    assert lines(lab) == [(True, "unchanged since it was built")]
    assert lines(build({"etcd": {"events": {"quota": "2GiB"}}})) == [
        (True, "changed since it was built; to compare: ./menagerie up lab --dry-run")
    ]


def test_a_missing_volume_driver_makes_it_unhealthy(access: FakeAccess, server: FakeServer) -> None:
    storage = load_cluster(AWS)
    server.answers[DAEMONS.replace("kube-system", "csi")] = {"items": [daemon("ebs-node")]}
    server.answers[DEPLOYMENTS.replace("kube-system", "csi")] = {"items": []}
    addons = {item.name: item for item in read_status(storage, access).items if item.group == "add-ons"}
    assert addons["ebs-node"].ok
    assert not addons["ebs-controller"].ok


def test_a_dead_member_makes_it_unhealthy_although_the_api_server_is_ready(lab: Cluster, access: FakeAccess) -> None:
    Etcds.ailments_by_role["main"] = {"etcd-main-1": "context deadline exceeded", "etcd-main-2": "", "etcd-main-3": ""}
    items = {item.name: item for item in read_status(lab, access).wrong}
    assert items["etcd-main-1"].detail == "member of main, context deadline exceeded"
    assert items["etcd-main-1"].help == "./menagerie etcd replace lab main etcd-main-1"
    assert items["quorum of main"].detail == (
        "2 of 3 members respond; leader: etcd-main-2, term 4. Writes still work; any further loss stops them"
    )
    assert unhealthy_parts(lab, access).startswith("etcd-main-1: member of main")


def test_an_etcd_that_can_not_be_read_is_an_item_and_the_rest_is_still_shown(lab: Cluster, access: FakeAccess) -> None:
    Etcds.ailments_by_role["events"] = EtcdError("etcd events: no answer within 9 s")
    assert wrong(lab, access) == {"members of events": "etcd events: no answer within 9 s"}


def test_an_api_server_that_the_load_balancer_does_not_list_is_unhealthy(
    lab: Cluster, access: FakeAccess, server: FakeServer
) -> None:
    server.answers["/;csv"] = CSV.replace("api,api-2,UP,1\n", "")
    assert balancer_states(access.outputs) == {"api-1": "UP", "api-2": "absent"}
    assert wrong(lab, access) == {"api-2": "10.77.0.12, load balancer says absent"}
    assert servers_down(access.outputs) == "api-2: 10.77.0.12, load balancer says absent"


def test_members_that_only_a_private_route_reaches_are_not_asked_and_the_api_s_checks_count(
    access: FakeAccess, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = load_cluster(PUBLIC_ALONE)
    Etcds.ailments_by_role["main"] = EtcdError("etcd main: no answer within 9 s")
    monkeypatch.setattr(access, "etcd_payloads", {"etcd-main-1": "{}"})
    items = {item.name: item for item in read_status(private, access).items if item.group == "etcds"}
    assert items["members of main"].detail.startswith("not asked: members have private addresses")
    assert {name for name, item in items.items() if item.ok} == {
        "members of main",
        "members of events",
        "etcd main",
        "etcd events",
    }
    assert "etcd" not in unhealthy_parts(private, access)
    server.answers["/readyz"] = READYZ.replace("[+]etcd-readiness ok", "[-]etcd-readiness failed: reason withheld")
    assert "etcd main: etcd ok, etcd-readiness failed" in unhealthy_parts(private, access)


def test_verbs_on_etcds_refuse_where_nobody_reaches_members(access: FakeAccess) -> None:
    with pytest.raises(RefusedError, match=r"nobody reaches the members of lemur's etcds: .*\./menagerie up lemur"):
        reach(load_cluster(PUBLIC_ALONE), access, "main")  # type: ignore[arg-type]


@pytest.mark.parametrize("page", ["", "<html>no such page</html>"])
def test_without_statistics_every_api_server_is_absent(access: FakeAccess, server: FakeServer, page: str) -> None:
    server.answers["/;csv"] = page
    assert set(balancer_states(access.outputs).values()) == {"absent"}


@pytest.mark.parametrize(
    ("daemons", "deployments", "name", "detail"),
    [
        ([daemon("kube-proxy")], [deployment("coredns"), METRICS_SERVER], "konnectivity-agent", "missing"),
        ([daemon("konnectivity-agent")], [deployment("coredns"), METRICS_SERVER], "kube-proxy", "missing"),
        ([daemon("kube-proxy"), daemon("konnectivity-agent")], [METRICS_SERVER], "coredns", "missing"),
        ([daemon("kube-proxy"), daemon("konnectivity-agent")], [deployment("coredns")], "metrics-server", "missing"),
        (
            [daemon("kube-proxy"), daemon("konnectivity-agent")],
            [deployment("coredns", 0, 0), METRICS_SERVER],
            "coredns",
            "0 of 0",
        ),
        (
            [daemon("kube-proxy", 0, 0), daemon("konnectivity-agent")],
            [deployment("coredns"), METRICS_SERVER],
            "kube-proxy",
            "0 of 0",
        ),
        (
            [daemon("kube-proxy", 3, 2), daemon("konnectivity-agent")],
            [deployment("coredns"), METRICS_SERVER],
            "kube-proxy",
            "2 of 3",
        ),
        (
            [daemon("kube-proxy", observed=None), daemon("konnectivity-agent")],
            [deployment("coredns"), METRICS_SERVER],
            "kube-proxy",
            "not yet counted",
        ),
        (
            [daemon("kube-proxy", generation=2), daemon("konnectivity-agent")],
            [deployment("coredns"), METRICS_SERVER],
            "kube-proxy",
            "not yet counted",
        ),
    ],
)
def test_an_add_on_is_healthy_only_if_it_exists_and_its_pods_are_counted_and_ready(
    lab: Cluster, access: FakeAccess, server: FakeServer, daemons: Any, deployments: Any, name: str, detail: str
) -> None:
    server.answers[DAEMONS], server.answers[DEPLOYMENTS] = {"items": daemons}, {"items": deployments}
    problems = wrong(lab, access)
    assert list(problems) == [name]
    assert detail in problems[name]


def test_other_workloads_in_kube_system_may_have_zero_replicas_but_no_missing_pods(
    lab: Cluster, access: FakeAccess, server: FakeServer
) -> None:
    server.answers[DAEMONS]["items"] += [daemon("gpu-plugin", 0, 0), daemon("exporter", 3, 1)]
    assert wrong(lab, access) == {"exporter": "1 of 3 pods ready"}


def test_every_bundled_workload_with_pods_is_an_expected_add_on(lab: Cluster) -> None:
    given = objects(lab, addresses.plan(lab))
    assert {thing["metadata"]["name"] for thing in given if "template" in thing.get("spec", {})} <= set(ADDONS)


def test_a_silent_api_is_asked_once_and_the_other_parts_are_still_shown(
    lab: Cluster, access: FakeAccess, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "ANSWER_S", 0.2)
    access.outputs = outputs()
    server.silent.set()
    items = read_status(lab, access).items
    assert [(item.name, item.detail) for item in items if not item.ok] == [("API", "no answer: ReadTimeoutError")]
    assert len(items) == 1 + (6 + 2) + 1
    assert server.asked == ["/readyz"]


def test_an_api_that_stops_responding_is_not_asked_again(lab: Cluster, access: FakeAccess, server: FakeServer) -> None:
    del server.answers["/api/v1/nodes"]
    assert wrong(lab, access) == {"API": "404 Not Found"}
    assert DAEMONS not in server.asked


def test_a_check_of_the_api_server_that_fails_is_named(lab: Cluster, access: FakeAccess, server: FakeServer) -> None:
    server.answers["/readyz"] = READYZ.replace("[+]ping ok", "[-]ping failed: reason withheld")
    assert wrong(lab, access) == {"readyz": "failing: ping"}


def test_one_item_that_is_not_ok_makes_the_status_not_ok() -> None:
    good, bad = StatusItem("nodes", "a", True, "Ready"), StatusItem("nodes", "b", False, "NotReady")
    assert Status("lab", "", (good,)).ok
    assert not Status("lab", "", (good, bad)).ok


def test_the_json_of_a_status_has_every_item() -> None:
    item = StatusItem("nodes", "a", True, "Ready")
    assert Status("lab", "https://x", (item,)).to_json()["items"] == [
        {"group": "nodes", "name": "a", "ok": True, "detail": "Ready", "help": ""}
    ]


def in_region(name: str, address: str) -> dict[str, Any]:
    made = node(name)
    made["metadata"]["labels"] = {"topology.kubernetes.io/zone": "2"}
    made["status"]["addresses"] = [{"type": "InternalIP", "address": address}]
    return made


def test_workers_in_the_region_are_known_by_their_address_and_counted(
    build: Callable[..., Cluster], server: FakeServer, access: FakeAccess
) -> None:
    """The cloud chooses their names, so they are in no spec."""
    cluster = build(
        {
            "control_plane": {"cloud": "azure", "region": "eastus2"},
            "network": {"nodes": "10.77.0.0/16"},
            "pools": {"cpu": {"machine": "Standard_D16ds_v5", "min": 2, "max": 4}},
            "storage": {"block": False},
        }
    )
    listed = server.answers["/api/v1/nodes"]["items"]
    server.answers["/api/v1/nodes"] = server.answers[NODES] = {"items": [*listed, in_region("cpu-7", "10.77.128.9")]}
    assert wrong(cluster, access) == {"workers in the region": "1 Ready, at least 2 required"}
    strangers = [in_region("cpu-8", "10.77.200.9"), in_region("stranger", "10.77.0.70")]
    server.answers["/api/v1/nodes"] = server.answers[NODES] = {
        "items": [*listed, in_region("cpu-7", "10.77.128.9"), *strangers]
    }
    assert wrong(cluster, access) == {"stranger": f"Ready, {VERSION}, not in the spec"}


def test_a_node_that_accepts_no_pods_is_unhealthy_and_shows_why(
    lab: Cluster, access: FakeAccess, server: FakeServer
) -> None:
    first, second, third = server.answers["/api/v1/nodes"]["items"]
    first["spec"] = {"taints": [{"key": preflight.KEY, "effect": "NoSchedule"}]}
    condition = {
        "type": preflight.CONDITION,
        "status": "False",
        "reason": "ClockSkewed",
        "message": "the clock is 9 s ahead",
    }
    first["status"]["conditions"].append(condition)
    note = {"type": preflight.CONDITION, "status": "True", "reason": "AsExpected"}
    second["status"]["conditions"].append({**note, "message": "GPU 0000:5a:00: Xid 63: keep an eye on it"})
    third["status"]["conditions"].append({**note, "message": "as expected of dgx-h100"})
    items = {item.name: item for item in read_status(lab, access).items if item.group == "nodes"}
    details = [items[each["metadata"]["name"]] for each in (first, second, third)]
    assert [item.ok for item in details] == [False, True, True]
    assert details[0].detail.endswith("no pods yet: its preflight reports ClockSkewed: the clock is 9 s ahead")
    assert details[1].detail.endswith(", preflight: GPU 0000:5a:00: Xid 63: keep an eye on it")
    assert "preflight" not in details[2].detail


def test_a_node_that_was_taken_out_of_service_shows_by_which_verb(
    lab: Cluster, access: FakeAccess, server: FakeServer
) -> None:
    first, second, third = server.answers["/api/v1/nodes"]["items"]
    mark = {"by": "reboot", "why": "new kernel", "since": "2026-11-21T20:00:00Z"}
    first["metadata"]["annotations"] = {drain.MARK: json.dumps(mark)}
    first["spec"] = second["spec"] = {"unschedulable": True}
    items = {item.name: item for item in read_status(lab, access).items if item.group == "nodes"}
    details = [items[each["metadata"]["name"]] for each in (first, second, third)]
    assert [item.ok for item in details] == [True, True, True]
    assert details[0].detail.endswith(", out of service since 2026-11-21T20:00:00Z (reboot: new kernel)")
    assert details[1].detail.endswith(", cordoned")
    assert "cordoned" not in details[2].detail


def test_where_the_spec_has_gpus_their_daemons_are_expected(build: Callable[..., Cluster], access: FakeAccess) -> None:
    own = build({"pools": {"workers": {"hardware": "dgx-h100"}}})
    assert set(wrong(own, access)) == {"nvidia-device-plugin", "dcgm-exporter"}


def test_an_etcd_without_quorum_shows_the_command_that_restores_it(lab: Cluster, access: FakeAccess) -> None:
    Etcds.ailments_by_role["main"] = {"etcd-main-1": "dead", "etcd-main-2": "dead", "etcd-main-3": ""}
    items = {item.name: item for item in read_status(lab, access).wrong}
    assert items["quorum of main"].detail == "1 of 3 members respond: it has lost quorum and accepts no writes"
    assert items["quorum of main"].help == "./menagerie etcd restore lab main"


@pytest.mark.parametrize(
    "change", [{"size": 7 * 2**30}, {"errors": ("memberID:1 alarm:NOSPACE ",)}], ids=["nearly full", "full"]
)
def test_a_member_without_space_shows_the_command_that_recovers_some(
    lab: Cluster, access: FakeAccess, change: dict[str, Any]
) -> None:
    Etcds.changes["etcd-events-2"] = change
    (item,) = read_status(lab, access).wrong
    assert (item.name, item.help) == ("etcd-events-2", "./menagerie etcd recover-space lab events")
    assert "of 8.0 GiB" in item.detail
    assert unhealthy_parts(lab, access) == ""


@pytest.mark.parametrize("change", [{"leader": "etcd-main-2"}, {"term": 5}], ids=["two leaders", "two terms"])
def test_members_that_disagree_about_the_leader_are_unhealthy(
    lab: Cluster, access: FakeAccess, change: dict[str, Any]
) -> None:
    Etcds.changes["etcd-main-2"] = change
    assert list(wrong(lab, access)) == ["quorum of main"]


def test_a_cluster_with_another_version_than_its_spec_shows_how_to_upgrade(
    lab: Cluster, access: FakeAccess, server: FakeServer
) -> None:
    server.answers["/version"] = {"gitVersion": "v1.36.3"}
    for each in server.answers["/api/v1/nodes"]["items"]:
        each["status"]["nodeInfo"]["kubeletVersion"] = "v1.32.9"
    first, second = read_status(lab, access).wrong
    assert (first.detail, first.help) == (f"v1.36.3; the spec has {VERSION}", "./menagerie upgrade lab")
    assert second.detail.startswith(
        "3 of v1.32.9; kubelet v1.32.9 is 4 minor versions from kube-apiserver 1.36; at most 3"
    )
    assert unhealthy_parts(lab, access) == ""


def test_workers_with_another_containerd_are_counted_with_the_command_that_drains_them(
    lab: Cluster, access: FakeAccess, server: FakeServer
) -> None:
    server.answers["/api/v1/nodes"]["items"][0]["status"]["nodeInfo"]["containerRuntimeVersion"] = "containerd://2.2.9"
    server.answers["/api/v1/nodes"]["items"][1]["status"]["nodeInfo"]["containerRuntimeVersion"] = (
        "containerd://Unknown"
    )
    (item,) = read_status(lab, access).wrong
    assert (item.name, item.help) == ("containerd", "./menagerie upgrade lab")
    now = versions.CONTAINERD
    assert item.detail == f"1 of 2.2.9, 1 of {now}, 1 of unknown; this release installs {now}"
    assert unhealthy_parts(lab, access) == ""


@pytest.mark.parametrize(
    ("api", "kubelet", "wrong"),
    [
        ("v1.36.4", "v1.36.9", False),
        ("v1.36.4", "v1.33.0", False),
        ("v1.36.4", "v1.32.0", True),
        ("v1.36.4", "v1.37.0", True),
        ("v1.36.4", "v1", False),
    ],
)
def test_a_kubelet_is_not_newer_than_the_api_servers_and_three_minor_versions_older_at_most(
    api: str, kubelet: str, wrong: bool
) -> None:
    assert bool(skew(api, kubelet)) is wrong


def not_ready(*nodes: dict[str, Any]) -> None:
    for each in nodes:
        each["status"]["conditions"][0]["status"] = "Unknown"


def test_all_nodes_not_ready_together_are_one_fault_of_the_control_plane(
    lab: Cluster, access: FakeAccess, server: FakeServer
) -> None:
    not_ready(*server.answers["/api/v1/nodes"]["items"])
    (fault,) = read_status(lab, access).wrong
    assert fault.detail.startswith("all 3 nodes are NotReady together: treated as a fault of the control plane")
    assert fault.help == "./menagerie up lab"


def test_a_site_all_of_whose_nodes_are_not_ready_is_one_fault_of_the_way_there(
    build: Callable[..., Cluster], access: FakeAccess, server: FakeServer
) -> None:
    cluster = build(
        {
            "control_plane": {"cloud": "azure", "region": "eastus2"},
            "network": {"nodes": "10.77.0.0/16"},
            "pools": {"cpu": {"machine": "Standard_D16ds_v5", "min": 1, "max": 4}},
            "storage": {"block": False},
        }
    )
    not_ready(*server.answers["/api/v1/nodes"]["items"])
    server.answers["/api/v1/nodes"]["items"] += [in_region("cpu-7", "10.77.128.9")]
    (fault,) = (item for item in read_status(cluster, access).wrong if item.group == "nodes")
    assert fault.name == "site onprem"
    assert "looks cut off: all of its 3 nodes are NotReady. Their pods keep running" in fault.detail


def test_with_many_nodes_only_unhealthy_ones_are_listed(
    build: Callable[..., Cluster], access: FakeAccess, server: FakeServer
) -> None:
    hosts = build().hosts["workers"]
    many = tuple(
        hosts[0].model_copy(update={"name": f"gpu-{number:03}", "address": hosts[0].address + number})
        for number in range(60)
    )
    cluster = build({}, {"workers": many})
    items = [node(host.name) for host in many[:-1]]
    not_ready(*items[: LISTED + 5])
    items[-1]["spec"] = {"unschedulable": True}
    server.answers["/api/v1/nodes"] = server.answers[NODES] = {"items": items}
    lines = [item for item in read_status(cluster, access).items if item.group == "nodes"]
    assert lines[0].detail == "34 Ready, 25 NotReady, 1 not joined, 1 out of service, of 60"
    assert [item.name for item in lines[1 : LISTED + 1]] == [f"gpu-{number:03}" for number in range(LISTED)]
    assert (lines[-1].name, lines[-1].detail) == ("and more", "6 more are unhealthy")


def test_the_current_operation_is_shown_and_an_interrupted_one_is_unhealthy(lab: Cluster, access: FakeAccess) -> None:
    with pytest.raises(OSError), one_operation(lab, None, "etcd restore", "main") as held:
        items = {item.group: item for item in read_status(lab, access).items}
        assert items["operation"].ok
        assert items["operation"].detail.startswith("held: ")
        held.done("stopped")
        raise OSError
    (operation,) = read_status(lab, access).wrong
    assert operation.detail.endswith("; done: stopped")
    assert operation.help == "./menagerie etcd restore lab main"
    assert unhealthy_parts(lab, access) == ""


def test_reading_a_status_leaves_no_record(lab: Cluster, access: FakeAccess) -> None:
    read_status(lab, access)
    assert not store.STATE.exists()


def test_an_etcd_without_a_passed_drill_is_unhealthy_when_its_cluster_had_time_for_one(
    lab: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime.now(UTC)
    access = FakeAccess(outputs().model_copy(update={"ca_pem": new_authority("kubernetes").certificate}))
    state = partial(BackupState, "main", summary="2 backups", allowed_s=3600.0, backups=())

    def backup(ok: bool, verified_s: float | None, after: timedelta) -> StatusItem:
        monkeypatch.setattr(work, "read_states", lambda *_, **__: [state(ok=ok, verified_s=verified_s)])
        (item,) = work.backups(lab, access, now + after)  # type: ignore[arg-type]
        return item

    assert backup(True, 60.0, timedelta(days=9)).ok
    early = backup(False, None, timedelta(minutes=7))
    assert (early.ok, early.detail) == (True, "2 backups; the cluster was created 7 min ago")
    late = backup(False, None, timedelta(hours=2))
    assert (late.ok, late.help) == (False, "./menagerie status lab backups")
    assert not backup(False, 99999.0, timedelta(minutes=5)).ok


def test_a_fleet_is_one_row_per_cluster_and_a_silent_one_does_not_delay_the_others() -> None:
    over = threading.Event()
    good, bad = (
        StatusItem("nodes", "a", True, "Ready"),
        StatusItem("etcds", "b", False, "dead", "./menagerie status c etcd"),
    )

    def look(name: str) -> Status | None:
        if name == "silent":
            over.wait()
        if name == "broken":
            raise OSError("no such file\nand more")
        items = {"well": (good,), "ill": (good, bad, bad)}.get(name)
        return Status(name, "https://x", items) if items else None

    fleet = read_fleet(["well", "ill", "unbuilt", "broken", "silent"], look, patience_s=0.5)
    over.set()
    assert [(row.state, row.ok) for row in fleet.rows] == [
        ("well", True),
        ("not well", False),
        ("not built", True),
        ("unknown", False),
        ("no answer", False),
    ]
    assert (fleet.rows[1].detail, fleet.rows[1].help) == ("b: dead (and 1 more)", "./menagerie status c etcd")
    assert fleet.rows[3].detail == "no such file"
    assert not fleet.ok
    assert read_fleet(["well", "unbuilt"], look).ok


def test_a_failing_part_does_not_hide_the_others(
    lab: Cluster, access: FakeAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Iterator[StatusItem]:
        raise RuntimeError("no such repository")
        yield

    monkeypatch.setattr(read, "backups", broken)
    (item,) = read_status(lab, access).wrong
    assert (item.group, item.detail) == ("backups", "RuntimeError: no such repository")
