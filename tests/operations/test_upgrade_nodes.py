"""Upgrades of workers with a real API server; the fake kubelets are in real_cluster.py."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from cluster import versions
from cluster.spec import Cluster
from operations import drain
from operations.drain import DrainMark, Rules, cordon, mark_of
from operations.reboot_needs import all_nodes
from operations.record.journal import Unrecorded
from operations.rolling import Rolled, RollOutcome, RollState
from operations.upgrade.nodes import BY, Nodes
from tests.operations.real_cluster import World
from tests.waiting import until

pytestmark = pytest.mark.xdist_group("real_cluster")
NAMES = ("worker-1", "worker-2", "worker-3")
OLD, NEW = "v1.35.4", "v1.36.4"
BEFORE, NOW = "containerd://2.2.9", f"containerd://{versions.CONTAINERD}"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain, "AGAIN_S", 0.5)


@pytest.fixture
def fleet(real: World) -> World:
    """The lab's three workers with the former kubelet, and with a pod on each."""
    for name in NAMES:
        host = real.add(name)
        host.version = OLD
        real.say(host)
    real.replicas("web", 3)
    until(lambda: real.ready("web") == 3, seconds=30)
    return real


class Configured:
    """Fake Ansible: installs a new kubelet and containerd, except on hosts that must fail or whose kubelet must not come back."""

    def __init__(self, fleet: World) -> None:
        self.fleet = fleet
        self.batches: list[tuple[str, ...]] = []
        self.fails: dict[str, str] = {}
        self.silent: set[str] = set()

    def __call__(self, hosts: tuple[str, ...]) -> Mapping[str, str]:
        self.batches.append(hosts)
        for name in hosts:
            assert self.fleet.pods(name) == []
            if name not in self.fails and name not in self.silent:
                self.fleet.hosts[name].version, self.fleet.hosts[name].runtime = NEW, NOW
                self.fleet.say(self.fleet.hosts[name])
        return {name: why for name, why in self.fails.items() if name in hosts}


def brought(cluster: Cluster, configured: Configured, operation: Unrecorded | None = None, **more: Any) -> Rolled:
    fleet = configured.fleet
    rules = Rules(timeout_s=30)
    nodes = Nodes(cluster, fleet.api, configured, operation or Unrecorded(), rules, **{"ready_s": 20, **more})
    stale = [name for name in NAMES if (fleet.hosts[name].version, fleet.hosts[name].runtime) != (NEW, NOW)]
    return nodes.bring(stale, lambda _: None, lambda _: None)


def states(rolled: Rolled) -> dict[str, RollState]:
    return {outcome.host: outcome.state for outcome in rolled.outcomes}


def marks(fleet: World) -> dict[str, DrainMark | None]:
    return {node.metadata.name: mark_of(node) for node in all_nodes(fleet.api())}


@contextmanager
def probed(fleet: World, app: str) -> Iterator[list[int]]:
    """Sample how many pods of a workload run, for the length of a block."""
    counts, over = list[int](), threading.Event()

    def look() -> None:
        while not over.is_set():
            counts.append(fleet.ready(app))
            time.sleep(0.05)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield counts
    finally:
        over.set()
        thread.join()


def test_a_canary_is_first_and_the_pool_spares_no_more_than_its_limit(lab: Cluster, fleet: World) -> None:
    configured, operation = Configured(fleet), Unrecorded()
    fleet.seen_out.clear()
    done = brought(lab, configured, operation)
    assert done.succeeded, done
    assert configured.batches == [(name,) for name in NAMES]
    assert max(map(len, fleet.seen_out)) == 1
    assert marks(fleet) == dict.fromkeys(NAMES)
    assert list(operation.steps) == [f"workers {name}" for name in NAMES]


def test_after_the_canary_a_pool_is_done_in_batches(build: Callable[..., Cluster], fleet: World) -> None:
    configured = Configured(fleet)
    assert brought(build({"pools": {"workers": {"max_unavailable": "2"}}}), configured).succeeded
    assert configured.batches == [("worker-1",), ("worker-2", "worker-3")]


def test_a_workload_with_a_budget_never_falls_below_it(build: Callable[..., Cluster], fleet: World) -> None:
    fleet.budget("web", "web", 2)
    with probed(fleet, "web") as counts:
        assert brought(build({"pools": {"workers": {"max_unavailable": "2"}}}), Configured(fleet)).succeeded
    assert len(counts) > 10
    assert min(counts) >= 2


def test_a_failed_canary_stops_the_run_and_is_first_in_the_next_one(lab: Cluster, fleet: World) -> None:
    configured = Configured(fleet)
    configured.fails = {"worker-1": "kubelet: Kubelet and kubeadm are here: no space left"}
    first = brought(lab, configured)
    assert states(first) == {
        "worker-1": RollState.FAILED,
        "worker-2": RollState.NOT_BEGUN,
        "worker-3": RollState.NOT_BEGUN,
    }
    assert "no space left" in first.outcomes[0].text
    assert "kubectl uncordon worker-1" in first.outcomes[0].text
    assert first.why_stopped == "worker-1 failed"
    left = marks(fleet)
    assert (left["worker-1"] or DrainMark("", "")).by == BY
    assert (left["worker-2"], left["worker-3"]) == (None, None)
    configured.fails, configured.batches = {}, []
    assert brought(lab, configured).succeeded
    assert configured.batches[0] == ("worker-1",)
    assert marks(fleet) == dict.fromkeys(NAMES)


def test_a_node_stays_out_of_service_while_its_kubelet_is_the_old_one(lab: Cluster, fleet: World) -> None:
    configured = Configured(fleet)
    configured.silent = {"worker-1"}
    done = brought(lab, configured, ready_s=1)
    assert states(done)["worker-1"] is RollState.FAILED
    assert "the kubelet reports version 1.35.4" in done.outcomes[0].text
    assert marks(fleet)["worker-1"]


def with_containerd(fleet: World, runtime: str) -> None:
    """Return the fleet with the new kubelet and this runtime."""
    for name in NAMES:
        host = fleet.hosts[name]
        host.version, host.runtime = NEW, runtime
        fleet.say(host)


def test_another_containerd_is_installed_on_drained_nodes_after_a_canary(lab: Cluster, fleet: World) -> None:
    with_containerd(fleet, BEFORE)
    configured, operation = Configured(fleet), Unrecorded()
    fleet.seen_out.clear()
    assert brought(lab, configured, operation).succeeded
    assert configured.batches == [(name,) for name in NAMES]
    assert max(map(len, fleet.seen_out)) == 1
    assert marks(fleet) == dict.fromkeys(NAMES)
    assert operation.facts == {"version": "1.36.4", "containerd": versions.CONTAINERD}


@pytest.mark.parametrize(
    ("left", "why"), [(BEFORE, "containerd 2.2.9"), ("containerd://Unknown", "containerd not responding")]
)
def test_a_node_stays_out_of_service_while_its_containerd_is_the_wrong_one(
    lab: Cluster, fleet: World, left: str, why: str
) -> None:
    with_containerd(fleet, left)
    configured = Configured(fleet)
    configured.silent = {"worker-1"}
    done = brought(lab, configured, ready_s=1)
    assert states(done)["worker-1"] is RollState.FAILED
    assert f"the kubelet reports {why}" in done.outcomes[0].text
    mark = marks(fleet)["worker-1"] or DrainMark("", "")
    assert (mark.by, mark.why) == (BY, f"to Kubernetes 1.36.4 and containerd {versions.CONTAINERD}")


def test_a_node_that_a_killed_run_left_with_the_right_versions_is_uncordoned(lab: Cluster, fleet: World) -> None:
    with_containerd(fleet, NOW)
    cordon(fleet.api(), "worker-2", DrainMark(BY, "for a test"))
    made = Nodes(lab, fleet.api, Configured(fleet), Unrecorded(), Rules(timeout_s=30), 20)
    assert made.bring(["worker-2"], lambda _: None, lambda _: None).succeeded
    assert marks(fleet) == dict.fromkeys(NAMES)
    assert not any(node.spec.unschedulable for node in all_nodes(fleet.api()))


def test_a_node_that_preflight_holds_back_is_not_uncordoned(lab: Cluster, fleet: World) -> None:
    configured = Configured(fleet)
    fleet.hosts["worker-1"].verdict = "False"
    fleet.say(fleet.hosts["worker-1"])
    done = brought(lab, configured, ready_s=1)
    assert states(done)["worker-1"] is RollState.FAILED
    assert "its preflight reports Test" in done.outcomes[0].text


def test_a_node_that_another_verb_took_out_is_left_to_it(lab: Cluster, fleet: World) -> None:
    cordon(fleet.api(), "worker-1", DrainMark("reboot", "for a test"))
    configured = Configured(fleet)
    done = brought(lab, configured)
    assert states(done)["worker-1"] is RollState.FAILED
    assert configured.batches == []
    assert (marks(fleet)["worker-1"] or DrainMark("", "")).by == "reboot"


def test_a_node_is_uncordoned_if_a_budget_prevents_its_drain(lab: Cluster, fleet: World) -> None:
    fleet.budget("web", "web", 3)
    configured = Configured(fleet)
    nodes = Nodes(lab, fleet.api, configured, Unrecorded(), Rules(timeout_s=2), 20)
    outcomes: list[RollOutcome] = []
    done = nodes.bring(NAMES, lambda _: None, outcomes.append)
    assert states(done) == {
        "worker-1": RollState.FAILED,
        "worker-2": RollState.NOT_BEGUN,
        "worker-3": RollState.NOT_BEGUN,
    }
    assert [each.host for each in outcomes] == ["worker-1"]
    assert configured.batches == []
    assert marks(fleet) == dict.fromkeys(NAMES)
