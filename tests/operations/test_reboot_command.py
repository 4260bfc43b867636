"""`menagerie reboot` from its command line to a real API server; hosts are those of real_cluster.py."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cluster.spec import Cluster
from operations import drain
from operations.drain import DrainMark, cordon, mark_of
from operations.reboot_needs import all_nodes
from tests.cli.terminal import Menagerie, command
from tests.operations.operators import Operator
from tests.operations.real_cluster import World
from tests.waiting import until

pytestmark = pytest.mark.xdist_group("real_cluster")
NAMES = ("worker-1", "worker-2", "worker-3")
WHY = "installed packages ask for a reboot: linux-image-6.1.0-40-amd64"


@pytest.fixture
def fleet(real: World) -> World:
    for name in NAMES:
        real.add(name)
    return real


@pytest.fixture
def menagerie(
    fleet: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Menagerie:
    @contextmanager
    def ssh(cluster: Cluster, known_hosts: str, key: Path | None) -> Iterator[World]:
        yield fleet

    monkeypatch.setattr(drain, "AGAIN_S", 0.5)
    monkeypatch.setattr("operations.reboot.STATE", tmp_path)
    monkeypatch.setattr("operations.ssh.Ssh", ssh)
    monkeypatch.setattr("operations.stack.access_to", lambda *_: Operator(fleet))
    monkeypatch.setattr("operations.configure.has_stack", lambda _: True)
    monkeypatch.setattr("operations.lab.os.geteuid", lambda: 0)

    menagerie = command(monkeypatch, capsys)
    return lambda *words, **typed: menagerie("reboot", "lab", *words, **typed)


def boots(fleet: World) -> list[int]:
    return [fleet.hosts[name].boots for name in NAMES]


def test_if_no_host_needs_it_nothing_is_done_without_a_question(menagerie: Menagerie, fleet: World) -> None:
    ran = menagerie()
    assert (ran.code, ran.out) == (0, "lab: no reboot needed; checked 3 hosts\n")
    assert boots(fleet) == [0, 0, 0]


def test_a_dry_run_lists_hosts_and_reasons_and_changes_nothing(menagerie: Menagerie, fleet: World) -> None:
    fleet.hosts["worker-2"].reasons = [WHY]
    ran = menagerie("--dry-run")
    assert (ran.code, ran.out) == (0, "lab: 1 of 3 hosts need a reboot; nothing was changed\n")
    assert f"worker-2 (workers): {WHY}" in ran.err
    document = json.loads(menagerie("--dry-run", "--json").out)
    assert [(each["host"], each["needs"], each["reasons"]) for each in document["hosts"]] == [
        ("worker-1", False, []), ("worker-2", True, [WHY]), ("worker-3", False, []),
    ]  # fmt: skip
    assert (boots(fleet), any(node.spec.unschedulable for node in all_nodes(fleet.api()))) == ([0, 0, 0], False)


def test_it_asks_before_it_starts_and_reports_what_is_done(menagerie: Menagerie, fleet: World) -> None:
    fleet.hosts["worker-2"].reasons = [WHY]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "0", "controller": True}
    fleet.pod("own", "worker-2", ownerReferences=[owner], volumes=[{"name": "s", "emptyDir": {}}])
    ran = menagerie()
    assert (ran.code, "./menagerie reboot lab --yes" in ran.err) == (2, True)
    ran = menagerie(typed="n\n")
    assert ran.code == 1
    assert "Reboot 1 hosts? 1 pods are evicted; 1 of them lose files on their node. [y/N]" in ran.err
    assert boots(fleet) == [0, 0, 0]
    ran = menagerie(typed="y\n")
    assert (ran.code, ran.out, boots(fleet)) == (0, "lab: 1 of 3 hosts rebooted\n", [0, 1, 0]), ran.err
    assert "✓ worker-2" in ran.err


def test_a_limit_is_respected_and_json_is_one_document(menagerie: Menagerie, fleet: World) -> None:
    for host in fleet.hosts.values():
        host.reasons = [WHY]
    ran = menagerie("--limit", "rack_onprem_r2", "--json")
    document = json.loads(ran.out)
    assert (ran.code, boots(fleet)) == (0, [0, 0, 1])
    ((host, state),) = [(each["host"], each["state"]) for each in document["hosts"]]
    assert (host, state, document["why_stopped"]) == ("worker-3", "done", "")
    assert menagerie("--limit", "worker-9").code == 2


def test_a_failure_is_reported_with_how_to_continue_and_what_was_not_started(
    menagerie: Menagerie, fleet: World
) -> None:
    for host in fleet.hosts.values():
        host.reasons = [WHY]
    fleet.hosts["worker-1"].boot_s = 600
    ran = menagerie("--yes", "--json", "--ready-timeout", "2s")
    document = json.loads(ran.out)
    assert (ran.code, document["error"]["code"], document["why_stopped"]) == (1, "workers-failed", "worker-1 failed")
    assert "0 of 3 hosts rebooted" in ran.err
    assert "worker-1 failed; not started: worker-2, worker-3" in ran.err
    assert [each["state"] for each in document["hosts"]] == ["failed", "not begun", "not begun"]


def test_hosts_that_do_not_respond_are_left_out_and_shown_by_the_exit_code(menagerie: Menagerie, fleet: World) -> None:
    fleet.hosts["worker-1"].answers = False
    fleet.hosts["worker-3"].reasons = [WHY]
    ran = menagerie("--yes")
    assert (ran.code, boots(fleet)) == (4, [0, 0, 1])
    assert "1 of 1 hosts rebooted\n  worker-1: ssh: connect to host" in ran.err


def test_pods_that_would_be_lost_stop_it_before_it_starts(menagerie: Menagerie, fleet: World) -> None:
    fleet.hosts["worker-3"].reasons = [WHY]
    fleet.pod("bare", "worker-3")
    ran = menagerie("--yes")
    assert (ran.code, boots(fleet)) == (2, [0, 0, 0])
    assert "default/bare: it has no controller that would recreate it elsewhere (on worker-3)" in ran.err
    assert menagerie("--yes", "--evict-unmanaged").code == 0
    assert boots(fleet) == [0, 0, 1]


def test_another_run_over_the_same_hosts_is_refused(menagerie: Menagerie, fleet: World, tmp_path: Path) -> None:
    (tmp_path / "lab").mkdir()
    holder = (
        "import sys, time; from pathlib import Path; from stacks.run_lock import turn\n"
        f"with turn(Path({str(tmp_path / 'lab' / 'workers-turn')!r})): print('has it', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", holder], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "has it\n"
            ran = menagerie("--yes")
            assert ran.code == 3
            assert "the workers of lab are being configured or rebooted by another run" in ran.err
        finally:
            process.kill()


@pytest.mark.parametrize("words", [("--drain-timeout", "5x"), ("--ready-timeout", "soon"), ("--parallel", "0")])
def test_invalid_options_are_refused(menagerie: Menagerie, words: tuple[str, str]) -> None:
    ran = menagerie(*words)
    assert ran.code == 2
    assert words[0] in ran.err


def test_an_interrupted_run_leaves_its_mark_and_the_next_one_finishes(
    menagerie: Menagerie, fleet: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from operations import rolling

    host = fleet.hosts["worker-1"]
    host.reasons, host.boot_s = [WHY], 3.0
    collect = rolling.Roll._collect
    asked: list[Any] = []

    def interrupted(self: rolling.Roll) -> str:
        if not asked:
            until(lambda: host.boots == 1, seconds=30)
            asked.append(time.monotonic())
            raise KeyboardInterrupt
        return collect(self)

    monkeypatch.setattr(rolling.Roll, "_collect", interrupted)
    ran = menagerie("--yes")
    assert (ran.code, "run the same command again to continue" in ran.err) == (130, True)
    node = fleet.core.read_node("worker-1")
    assert (node.spec.unschedulable, mark_of(node) is not None) == (True, True)
    ran = menagerie("--yes")
    assert (ran.code, host.boots) == (0, 1), ran.err
    assert "started 20" in ran.err
    assert mark_of(fleet.core.read_node("worker-1")) is None


def test_a_node_that_was_cordoned_by_hand_is_rebooted_and_stays_cordoned(menagerie: Menagerie, fleet: World) -> None:
    fleet.hosts["worker-1"].reasons = [WHY]
    fleet.merge("/api/v1/nodes/worker-1", {"spec": {"unschedulable": True}})
    assert menagerie("--yes").code == 0
    node = fleet.core.read_node("worker-1")
    assert (boots(fleet), node.spec.unschedulable, mark_of(node)) == ([1, 0, 0], True, None)


def test_nodes_that_another_verb_took_out_are_left_to_it(menagerie: Menagerie, fleet: World) -> None:
    cordon(fleet.api(), "worker-1", DrainMark("repair", "GPU 3 has fallen off the bus"))
    assert menagerie("--yes").code == 0
    fleet.hosts["worker-1"].reasons = [WHY]
    ran = menagerie("--yes")
    assert (ran.code, boots(fleet)) == (1, [0, 0, 0])
    assert "it is out of service (repair: GPU 3 has fallen off the bus)" in ran.err
