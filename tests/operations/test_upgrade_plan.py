"""What to do in which order, from the running versions and the spec."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from cluster import versions
from cluster.releases import NodePrograms
from cluster.spec import Cluster
from operations.upgrade.guard import left_to_upgrade
from operations.upgrade.parts import RunningVersions
from operations.upgrade.plan import GROUP, UpgradeStage, plan, wrong

OLD, NEW = "1.35.4", "1.36.4"
WORKERS = ("worker-1", "worker-2", "worker-3")
REGION = "lab-region-1"
BEFORE, CONTAINERD = "2.2.9", versions.CONTAINERD


@pytest.fixture
def at(build: Callable[..., Cluster]) -> Callable[[str], Cluster]:
    return lambda version: build({"kubernetes": {"version": version}})


def runs(
    hosts: Mapping[str, str] | str,
    addons: str,
    nodes: Mapping[str, str] | str,
    containerd: Mapping[str, str] | str = CONTAINERD,
    **more: Any,
) -> RunningVersions:
    """Return running versions: one for all of a kind, or one each; containerd for the named nodes, the new one for others."""
    servers = dict.fromkeys(("api-1", "api-2"), hosts) if isinstance(hosts, str) else dict(hosts)
    listed = dict.fromkeys((*WORKERS, REGION), nodes) if isinstance(nodes, str) else dict(nodes)
    answers = frozenset(each for each in servers.values() if each)
    runtimes = dict.fromkeys(listed, containerd) if isinstance(containerd, str) else containerd
    programs = {name: NodePrograms(kubelet, runtimes.get(name, CONTAINERD)) for name, kubelet in listed.items()}
    return RunningVersions(servers, answers, addons, addons, programs, **{"region": frozenset({REGION}), **more})


def test_an_upgrade_goes_from_api_servers_to_workers(at: Callable[[str], Cluster]) -> None:
    upgrade = plan(at(NEW), runs(OLD, OLD, OLD))
    assert not upgrade.is_back
    assert upgrade.stages == (UpgradeStage.SERVERS, UpgradeStage.ADDONS, UpgradeStage.REGION, UpgradeStage.WORKERS)
    assert (upgrade.servers, upgrade.region, upgrade.workers) == (("api-1", "api-2"), (REGION,), WORKERS)
    assert list(wrong(upgrade)) == []


def test_a_rollback_goes_from_workers_to_api_servers(at: Callable[[str], Cluster]) -> None:
    upgrade = plan(at(OLD), runs(NEW, NEW, NEW))
    assert upgrade.is_back
    assert upgrade.stages == (UpgradeStage.WORKERS, UpgradeStage.REGION, UpgradeStage.ADDONS, UpgradeStage.SERVERS)
    assert list(wrong(upgrade)) == []


def test_parts_with_the_right_version_are_left_alone(at: Callable[[str], Cluster]) -> None:
    assert plan(at(NEW), runs(NEW, NEW, NEW)).is_done


@pytest.mark.parametrize(
    ("running", "stages"),
    [
        (runs({"api-1": NEW, "api-2": OLD}, OLD, OLD), tuple(UpgradeStage)),
        (runs(NEW, OLD, OLD), (UpgradeStage.ADDONS, UpgradeStage.REGION, UpgradeStage.WORKERS)),
        (runs(NEW, NEW, OLD), (UpgradeStage.REGION, UpgradeStage.WORKERS)),
        (runs(NEW, NEW, {"worker-1": NEW, "worker-2": OLD, REGION: NEW}), (UpgradeStage.WORKERS,)),
    ],
)
def test_an_interrupted_run_is_resumed(
    at: Callable[[str], Cluster], running: RunningVersions, stages: tuple[UpgradeStage, ...]
) -> None:
    upgrade = plan(at(NEW), running)
    assert upgrade.stages == stages
    assert upgrade.is_begun is bool(upgrade.servers)
    assert not {*upgrade.servers, *upgrade.workers, *upgrade.region} & {
        *(name for name, version in running.hosts.items() if version == NEW),
        *(name for name, programs in running.nodes.items() if programs.kubelet == NEW),
    }
    assert list(wrong(upgrade)) == []


def test_a_partial_upgrade_is_rolled_back_only_where_it_is_new(at: Callable[[str], Cluster]) -> None:
    upgrade = plan(at(OLD), runs({"api-1": NEW, "api-2": OLD}, OLD, OLD))
    assert (upgrade.is_back, upgrade.stages, upgrade.servers) == (True, (UpgradeStage.SERVERS,), ("api-1",))


def test_an_api_server_that_does_not_respond_is_first(at: Callable[[str], Cluster]) -> None:
    upgrade = plan(at(NEW), runs({"api-1": OLD, "api-2": ""}, OLD, OLD))
    assert upgrade.servers == ("api-2", "api-1")


def test_api_servers_of_a_cloud_are_one_group(at: Callable[[str], Cluster]) -> None:
    assert plan(at(NEW), RunningVersions({}, frozenset({OLD, NEW}), OLD, OLD)).servers == (GROUP,)
    assert plan(at(NEW), RunningVersions({}, frozenset({NEW}), NEW, NEW)).is_done


def test_some_workers_may_be_left_for_another_day(at: Callable[[str], Cluster]) -> None:
    running = runs(OLD, OLD, OLD)
    assert plan(at(NEW), running, control_plane_only=True).stages == (UpgradeStage.SERVERS, UpgradeStage.ADDONS)
    assert plan(at(NEW), running, ["workers"]).workers == WORKERS
    assert plan(at(NEW), running, []).workers == ()
    assert plan(at(NEW), running, control_plane_only=True).limited
    assert not plan(at(NEW), running).limited


@pytest.mark.parametrize("pools", [None, ["other"]])
def test_workers_that_would_be_newer_than_their_api_servers_block_a_rollback(
    at: Callable[[str], Cluster], pools: list[str] | None
) -> None:
    problems = list(wrong(plan(at(OLD), runs(NEW, NEW, NEW), pools, control_plane_only=pools is None)))
    assert len(problems) == 4
    assert all("is newer than kube-apiserver 1.35" in each for each in problems)


@pytest.mark.parametrize(("now", "target"), [("1.34.2", NEW), ("1.37.0", OLD), ("1.38.0", NEW)])
def test_a_minor_may_not_be_skipped(at: Callable[[str], Cluster], now: str, target: str) -> None:
    problems = list(wrong(plan(at(target), runs(now, now, min(now, target)))))
    assert any(f"from {now} to {target} skips minor versions" in each for each in problems)


def test_a_kubelet_that_would_be_four_minors_behind_blocks_the_upgrade(at: Callable[[str], Cluster]) -> None:
    running = runs(OLD, OLD, {**dict.fromkeys(WORKERS, OLD), "worker-3": "1.32.1"})
    assert [each.partition(":")[0] for each in wrong(plan(at(NEW), running))] == ["node worker-3"]


def test_the_plan_is_a_document(at: Callable[[str], Cluster]) -> None:
    document = json.loads(json.dumps(plan(at(NEW), runs(OLD, OLD, OLD)).to_json()))
    assert document["stages"] == ["API servers", "kube-proxy", "workers in the region", "workers at sites"]
    assert document["running"]["nodes"]["worker-1"] == {"kubelet": OLD, "containerd": CONTAINERD}
    assert document["on_nodes"] == {"kubelet": NEW, "containerd": CONTAINERD}
    assert (document["running"]["region"], document["running"]["begun"]) == ([REGION], [])


def test_a_new_containerd_alone_changes_only_workers(at: Callable[[str], Cluster]) -> None:
    upgrade = plan(at(NEW), runs(NEW, NEW, NEW, {"worker-2": BEFORE, REGION: BEFORE}))
    assert upgrade.stages == (UpgradeStage.REGION, UpgradeStage.WORKERS)
    assert (upgrade.region, upgrade.workers) == ((REGION,), ("worker-2",))
    assert upgrade.goal == f"containerd {CONTAINERD}"
    assert list(wrong(upgrade)) == []


def test_with_both_at_once_each_worker_is_drained_once(at: Callable[[str], Cluster]) -> None:
    upgrade = plan(at(NEW), runs(OLD, OLD, OLD, BEFORE))
    assert (upgrade.stages, upgrade.workers) == (tuple(UpgradeStage), WORKERS)
    assert upgrade.goal == f"Kubernetes {NEW} and containerd {CONTAINERD}"
    assert plan(at(NEW), runs(OLD, OLD, OLD)).goal == f"Kubernetes {NEW}"


@pytest.mark.parametrize("containerd", [BEFORE, "2.4.0"])
def test_only_kubernetes_decides_the_direction_and_the_order(at: Callable[[str], Cluster], containerd: str) -> None:
    alone = plan(at(NEW), runs(NEW, NEW, NEW, containerd))
    assert (alone.is_back, alone.stages) == (False, (UpgradeStage.REGION, UpgradeStage.WORKERS))
    up = plan(at(NEW), runs(OLD, OLD, OLD, containerd))
    assert (up.is_back, up.stages) == (False, tuple(UpgradeStage))
    back = plan(at(OLD), runs(NEW, NEW, NEW, containerd))
    assert (back.is_back, back.stages) == (True, tuple(reversed(UpgradeStage)))


def test_an_unreported_containerd_does_not_count_as_another_release(at: Callable[[str], Cluster]) -> None:
    assert plan(at(NEW), runs(NEW, NEW, NEW, "")).is_done


def test_machines_in_a_cloud_with_another_containerd_are_listed_and_left_to_the_cloud(
    at: Callable[[str], Cluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cluster, "is_lab", False)
    upgrade = plan(at(NEW), runs(NEW, NEW, NEW, {REGION: BEFORE}))
    assert (upgrade.region, upgrade.by_the_cloud, upgrade.stages) == ((), (REGION,), ())


def test_a_node_that_an_earlier_run_took_out_is_returned_whatever_its_version(
    at: Callable[[str], Cluster],
) -> None:
    upgrade = plan(at(NEW), runs(NEW, NEW, NEW, begun=frozenset({"worker-2"})))
    assert (upgrade.stages, upgrade.workers) == ((UpgradeStage.WORKERS,), ("worker-2",))
    assert plan(at(NEW), runs(NEW, NEW, NEW, begun=frozenset({"worker-2"})), control_plane_only=True).limited


@pytest.mark.parametrize(
    ("runtime", "containerd"),
    [
        ("containerd://2.3.4", "2.3.4"),
        ("containerd://v2.3.4", "2.3.4"),
        ("containerd://Unknown", ""),
        ("<unknown>", ""),
        ("", ""),
        ("cri-o://1.36.0", "cri-o://1.36.0"),
    ],
)
def test_a_node_s_runtime_version_is_parsed(runtime: str, containerd: str) -> None:
    assert NodePrograms.said("v1.36.4", runtime) == NodePrograms("1.36.4", containerd)


def test_workers_that_are_left_out_are_listed_with_the_command(build: Callable[..., Cluster]) -> None:
    assert left_to_upgrade(build(), frozenset({"worker-1"})) == (
        "1 workers run another release of Kubernetes or containerd and were left out (worker-1); to drain and upgrade them, run: "
        "./menagerie upgrade lab"
    )
    assert left_to_upgrade(build(), frozenset()) == ""
