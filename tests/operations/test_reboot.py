"""Reboots with a real API server; the fake hosts and kubelets are in real_cluster.py."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clients.remote.executor import Done
from cluster import preflight
from cluster.spec import Cluster
from operations import drain
from operations.drain import DrainMark, DrainTimedOutError, OutOfServiceError, Rules, cordon, mark_of
from operations.reboot import Rebooter, RebootError, order, run
from operations.reboot_needs import BY, RebootPlan, all_nodes, plan, pods_of, read_report
from operations.rolling import Rolled
from tests.operations.real_cluster import Ended, World
from tests.waiting import until

pytestmark = pytest.mark.xdist_group("real_cluster")
NAMES = ("worker-1", "worker-2", "worker-3")
WHY = "the kernel runs without iommu=pt"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain, "AGAIN_S", 0.5)


@pytest.fixture
def fleet(real: World) -> World:
    """The lab's three workers, which all need a reboot, with a pod on each."""
    for name in NAMES:
        real.add(name).reasons = [WHY]
    real.replicas("web", 3)
    until(lambda: real.ready("web") == 3, seconds=30)
    return real


def planned(cluster: Cluster, fleet: World, *hosts: str, rules: Rules | None = None) -> RebootPlan:
    return plan(cluster, fleet.api(), hosts or NAMES, fleet, rules or Rules())


def rebooter(cluster: Cluster, fleet: World, back_s: float = 30, **rules: Any) -> Rebooter:
    return Rebooter(cluster, fleet.api, fleet, Rules(timeout_s=30, **rules), back_s)


def rolled(cluster: Cluster, fleet: World, at_once: int = 1, back_s: float = 30) -> Rolled:
    does = rebooter(cluster, fleet, back_s)
    return run(planned(cluster, fleet), does, at_once, lambda _: None, lambda _: None)


def cordoned(fleet: World) -> set[str]:
    return {node.metadata.name for node in all_nodes(fleet.api()) if node.spec.unschedulable}


def test_all_are_rebooted_one_after_another_and_uncordoned(lab: Cluster, fleet: World) -> None:
    before = {name: fleet.hosts[name].boot_id for name in NAMES}
    reboots = planned(lab, fleet)
    assert (reboots.hosts, pods_of(reboots.needs)) == (NAMES, (3, 0))
    fleet.seen_out.clear()
    done = rolled(lab, fleet)
    assert done.succeeded, done
    assert {name: host.boots for name, host in fleet.hosts.items()} == dict.fromkeys(NAMES, 1)
    assert all(fleet.hosts[name].boot_id != before[name] for name in NAMES)
    assert max(map(len, fleet.seen_out)) == 1
    assert {name for out in fleet.seen_out for name in out} == set(NAMES)
    assert (cordoned(fleet), [mark_of(node) for node in all_nodes(fleet.api())]) == (set(), [None] * 3)
    assert fleet.ready("web") == 3
    assert planned(lab, fleet).hosts == ()


def test_at_most_as_many_reboot_at_once_as_the_pool_can_spare(build: Callable[..., Cluster], fleet: World) -> None:
    cluster = build({"pools": {"workers": {"max_unavailable": "2"}}})
    fleet.seen_out.clear()
    assert rolled(cluster, fleet, at_once=3).succeeded
    assert max(map(len, fleet.seen_out)) == 2


def test_a_host_that_needs_none_is_left_alone(lab: Cluster, fleet: World) -> None:
    fleet.hosts["worker-2"].reasons = []
    reboots = planned(lab, fleet)
    assert reboots.hosts == ("worker-1", "worker-3")
    assert [each.reasons for each in reboots.needs] == [(WHY,), (), (WHY,)]


@pytest.mark.parametrize("killed", ["after the cordon", "while it boots", "after the boot"])
def test_a_killed_run_is_resumed(lab: Cluster, fleet: World, killed: str) -> None:
    host = fleet.hosts["worker-2"]
    cordon(fleet.api(), "worker-2", DrainMark(BY, WHY))
    if killed != "after the cordon":
        for pod in fleet.pods("worker-2"):
            fleet.core.delete_namespaced_pod(pod, "default", grace_period_seconds=0)
        host.boot_s = 3.0 if killed == "while it boots" else 0.2
        fleet.start("worker-2", order(host.boot_id))
    if killed == "after the boot":
        until(lambda: host.reasons == [], seconds=30)
    reboots = planned(lab, fleet)
    assert reboots.hosts[0] == "worker-2"
    assert reboots.failed == ()
    rebooter(lab, fleet).reboot(reboots.needs[1], lambda _: None)
    assert (host.boots, cordoned(fleet), host.reasons) == (1, set(), [])


def test_the_first_failure_stops_and_the_node_stays_out_with_its_mark(lab: Cluster, fleet: World) -> None:
    fleet.hosts["worker-1"].after_boot = [WHY]
    done = rolled(lab, fleet)
    assert [outcome.state.value for outcome in done.outcomes] == ["failed", "not begun", "not begun"]
    assert done.why_stopped == "worker-1 failed"
    text = done.outcomes[0].text
    assert f"worker-1 has rebooted and still needs a reboot: {WHY}. Its node stays cordoned" in text
    assert "run the same command again" in text
    assert cordoned(fleet) == {"worker-1"}
    mark = mark_of(fleet.core.read_node("worker-1"))
    assert mark
    assert (mark.by, mark.why) == ("reboot", WHY)
    # Its boot loader has been fixed: the same command reboots it once more.
    fleet.hosts["worker-1"].after_boot = []
    assert rolled(lab, fleet).succeeded
    assert (fleet.hosts["worker-1"].boots, cordoned(fleet)) == (2, set())


def test_a_host_that_no_longer_needs_a_reboot_is_only_uncordoned(lab: Cluster, fleet: World) -> None:
    cordon(fleet.api(), "worker-1", DrainMark(BY, WHY))
    fleet.hosts["worker-1"].reasons = []
    rebooter(lab, fleet).reboot(planned(lab, fleet).needs[0], lambda _: None)
    assert (fleet.hosts["worker-1"].boots, cordoned(fleet)) == (0, set())


def test_a_node_whose_kubelet_is_silent_since_the_boot_does_not_count_as_ready(lab: Cluster, fleet: World) -> None:
    """It is still Ready, by its kubelet's earlier report."""
    (need, *_) = planned(lab, fleet).needs
    say = fleet.say
    fleet.say = lambda host, ready=True: None  # type: ignore[method-assign]
    with pytest.raises(RebootError, match="worker-1 is up, but its kubelet has not reported since"):
        rebooter(lab, fleet, back_s=3).reboot(need, lambda _: None)
    fleet.say = say  # type: ignore[method-assign]
    fleet.say(fleet.hosts["worker-1"])
    rebooter(lab, fleet).reboot(planned(lab, fleet).needs[0], lambda _: None)
    assert (fleet.hosts["worker-1"].boots, cordoned(fleet)) == (1, set())


def test_a_host_that_does_not_come_back_is_reported_with_what_is_missing(lab: Cluster, fleet: World) -> None:
    fleet.hosts["worker-1"].boot_s = 600
    (need, *_) = planned(lab, fleet).needs
    with pytest.raises(
        RebootError, match="worker-1: gave up after 2 s: worker-1 does not respond: ssh: connect .*console"
    ):
        rebooter(lab, fleet, back_s=2).reboot(need, lambda _: None)
    assert cordoned(fleet) == {"worker-1"}


def test_a_host_is_not_uncordoned_before_preflight_has_passed_since_its_boot(lab: Cluster, fleet: World) -> None:
    host = fleet.hosts["worker-1"]
    host.verdict = "False"
    (need, *_) = planned(lab, fleet).needs
    with pytest.raises(RebootError, match="preflight of worker-1 reports Test: of this test"):
        rebooter(lab, fleet, back_s=3).reboot(need, lambda _: None)
    # A good verdict from before the boot does not count.
    host.verdict = "True"
    fleet.say(host)
    host.booted_at += 3600
    with pytest.raises(RebootError, match="preflight has not reported on worker-1 since it booted"):
        rebooter(lab, fleet, back_s=2).reboot(planned(lab, fleet).needs[0], lambda _: None)
    host.booted_at -= 3600
    taint = {"key": preflight.KEY, "effect": "NoSchedule"}
    fleet.merge("/api/v1/nodes/worker-1", {"spec": {"taints": [taint]}})
    with pytest.raises(RebootError, match="the API servers have not removed its taint yet"):
        rebooter(lab, fleet, back_s=2).reboot(planned(lab, fleet).needs[0], lambda _: None)
    fleet.merge("/api/v1/nodes/worker-1", {"spec": {"taints": None}})
    rebooter(lab, fleet).reboot(planned(lab, fleet).needs[0], lambda _: None)
    assert (host.boots, cordoned(fleet)) == (1, set())


def test_pools_without_preflight_are_back_when_they_are_ready(build: Callable[..., Cluster], fleet: World) -> None:
    fleet.hosts["worker-1"].verdict = "False"
    cluster = build({"pools": {"workers": {"preflight": False}}})
    rebooter(cluster, fleet).reboot(planned(cluster, fleet).needs[0], lambda _: None)
    assert cordoned(fleet) == set()


def test_a_node_that_can_not_be_drained_is_uncordoned_and_not_rebooted(lab: Cluster, fleet: World) -> None:
    fleet.budget("always", "web", 3)
    full = next(each for each in planned(lab, fleet).needs if each.pods)
    with pytest.raises(DrainTimedOutError, match=f"{full.host} was not empty after 1 s: .*budget always"):
        Rebooter(lab, fleet.api, fleet, Rules(timeout_s=1), 30).reboot(full, lambda _: None)
    assert (cordoned(fleet), fleet.hosts[full.host].boots) == (set(), 0)


def test_pods_that_would_be_lost_are_reported_before_anything_is_changed(lab: Cluster, fleet: World) -> None:
    fleet.pod("bare", "worker-2")
    with pytest.raises(
        OutOfServiceError,
        match=r"default/bare: it has no controller that would recreate it elsewhere \(on worker-2\)\n.*--evict",
    ):
        planned(lab, fleet)
    assert cordoned(fleet) == set()
    assert planned(lab, fleet, rules=Rules(unmanaged=True)).hosts == NAMES
    fleet.hosts["worker-2"].reasons = []
    assert planned(lab, fleet).hosts == ("worker-1", "worker-3")


def test_hosts_that_can_not_be_rebooted_are_reported_and_left_out(lab: Cluster, fleet: World) -> None:
    fleet.hosts["worker-1"].answers = False
    cordon(fleet.api(), "worker-2", DrainMark("repair", "GPU 3"))
    assert fleet.hosts["worker-2"].reasons
    fleet.core.delete_node("worker-3")
    reboots = planned(lab, fleet)
    assert reboots.hosts == ()
    silent, repaired, unknown = reboots.failed
    assert (silent.unreachable, silent.failed) == (True, "ssh: connect to host: Connection refused")
    assert repaired.failed == "it is out of service (repair: GPU 3)"
    assert unknown.failed.startswith("it is not a node yet")


def test_a_node_that_is_uncordoned_during_its_drain_is_not_rebooted(lab: Cluster, real: World) -> None:
    real.add("worker-1").reasons = [WHY]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "0", "controller": True}
    real.pod("own", "worker-1", ownerReferences=[owner])

    def report(text: str) -> None:
        if "pods are left" in text:
            real.merge("/api/v1/nodes/worker-1", {"spec": {"unschedulable": None}})

    (need,) = planned(lab, real, "worker-1").needs
    with pytest.raises(
        RebootError, match="someone uncordoned worker-1 while it was being drained; it was not rebooted"
    ):
        rebooter(lab, real).reboot(need, report)
    assert (real.hosts["worker-1"].boots, mark_of(real.core.read_node("worker-1"))) == (0, None)


class Saying:
    """An executor whose hosts all give the same result."""

    def __init__(self, code: int, text: str) -> None:
        self.done = Done(code, text)

    def start(self, host: str, words: object) -> Ended:
        return Ended(self.done)


@pytest.mark.parametrize(
    ("code", "text", "expected"),
    [
        (0, "Warning: a banner\n" + json.dumps({"boot_id": "1"}), {"boot_id": "1"}),
        (127, "sh: 1: menagerie-boot: not found", ("/usr/local/sbin/menagerie-boot is missing; run: ./menagerie configure lab --tags boot --limit a", False)),
        (255, "Connection timed out", ("Connection timed out", True)),
        (124, "still running after 60 s", ("still running after 60 s", True)),
        (1, "Traceback\nValueError: x", ("ValueError: x", False)),
    ],
)  # fmt: skip
def test_a_host_s_replies_are_understood(code: int, text: str, expected: object) -> None:
    assert read_report(Saying(code, text), "lab", "a") == expected


def test_if_the_reboot_command_fails_the_node_stays_cordoned(
    lab: Cluster, fleet: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = fleet.start

    def refuses(host: str, words: Any) -> Any:
        return Ended(Done(1, "Failed to start transient timer unit")) if words[0] == "sh" else start(host, words)

    monkeypatch.setattr(fleet, "start", refuses)
    with pytest.raises(
        RebootError, match="the command to reboot worker-1 failed: Failed to start transient timer unit"
    ):
        rebooter(lab, fleet).reboot(planned(lab, fleet).needs[0], lambda _: None)
    assert cordoned(fleet) == {"worker-1"}


def test_a_command_for_a_past_boot_does_not_reboot(tmp_path: Path) -> None:
    """Run it in a shell, as on the host; the reboot command is a script."""
    (tmp_path / "systemd-run").write_text(f'#!/bin/sh\necho "$*" >{tmp_path}/asked\n')
    (tmp_path / "systemd-run").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    now = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    subprocess.run(order("d9805be5-ae4e-4c20-8091-d4d77a7f6acd"), env=environment, check=True)
    assert not (tmp_path / "asked").exists()
    subprocess.run(order(now), env=environment, check=True)
    assert (tmp_path / "asked").read_text().endswith("systemctl reboot\n")
