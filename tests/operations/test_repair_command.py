"""`menagerie repair` from its command line to a real API server; hosts are those of real_cluster.py."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cluster.errors import TimedOutError
from cluster.spec import Cluster
from operations import removals
from operations.drain import mark_of
from operations.reboot import Rebooter
from operations.repair import records
from tests.cli.terminal import Menagerie, between_rounds, command
from tests.operations.operators import Operator
from tests.operations.real_cluster import World
from tests.operations.repairs import NAMES, SETTINGS, joined, silence

pytestmark = pytest.mark.xdist_group("real_cluster")


@pytest.fixture
def fleet(real: World) -> World:
    return joined(real)


@pytest.fixture
def menagerie(
    fleet: World,
    build: Callable[..., Cluster],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> Menagerie:
    @contextmanager
    def ssh(cluster: Cluster, known_hosts: str, key: Path | None) -> Iterator[World]:
        yield fleet

    monkeypatch.setattr("operations.reboot.STATE", tmp_path)
    monkeypatch.setattr("operations.ssh.Ssh", ssh)
    monkeypatch.setattr("operations.stack.access_to", lambda *_: Operator(fleet))
    monkeypatch.setattr("operations.repair.means.control_plane", lambda *_: "")
    # With a node_startup in which no node is judged, no host could come back.
    monkeypatch.setattr("operations.repair.means.Rebooter", lambda *given: Rebooter(*given[:4], 30.0))
    monkeypatch.setattr("cli.verbs.repair.built", lambda _: build({"repair": SETTINGS}))

    menagerie = command(monkeypatch, capsys)
    return lambda *words, **typed: menagerie("repair", "lab", *words, **typed)


def boots(fleet: World) -> list[int]:
    return [fleet.hosts[name].boots for name in NAMES]


def test_if_nothing_is_broken_nothing_is_done_without_a_question(menagerie: Menagerie, fleet: World) -> None:
    ran = menagerie()
    assert (ran.code, ran.out) == (0, "lab: nothing to repair; checked 3 nodes\n"), ran.err


def test_a_dry_run_shows_what_is_broken_and_changes_nothing(menagerie: Menagerie, fleet: World) -> None:
    silence(fleet, "worker-2")
    ran = menagerie("--dry-run")
    assert (ran.code, ran.out) == (1, "lab: 1 of 3 nodes to repair, 1 may start; nothing was changed\n")
    assert "worker-2 (workers): reboot: NotReady (Test)" in ran.err
    document = json.loads(menagerie("--dry-run", "--json").out)
    assert [(each["host"], each["step"], each["allowed"]) for each in document["hosts"]] == [
        ("worker-2", "reboot", True)
    ]
    assert (boots(fleet), mark_of(fleet.core.read_node("worker-2"))) == ([0, 0, 0], None)
    assert (removals.recorded_removals(fleet.api()), records.repair_records(fleet.api())) == (((), False), {})


def test_it_asks_before_it_starts_and_reports_each_result(menagerie: Menagerie, fleet: World) -> None:
    silence(fleet, "worker-2")
    ran = menagerie()
    assert (ran.code, "./menagerie repair lab --yes" in ran.err) == (2, True)
    ran = menagerie(typed="n\n")
    assert (ran.code, "Repair 1 hosts? 0 pods are evicted. [y/N]" in ran.err, boots(fleet)) == (1, True, [0, 0, 0])
    ran = menagerie(typed="y\n")
    assert (ran.code, ran.out) == (0, "lab: 1 repaired, 0 left; checked 3 nodes\n"), ran.err
    assert ("✓ worker-2  mended: reboot" in ran.err, boots(fleet)) == (True, [0, 1, 0])


def test_a_brake_is_reported_and_an_override_is_printed(menagerie: Menagerie, fleet: World) -> None:
    silence(fleet, "worker-1", "worker-3")
    ran = menagerie("--yes", "--max-unhealthy", "40%")
    assert (ran.code, boots(fleet)) == (1, [0, 0, 0])
    assert "--max-unhealthy 40% overrides the spec's limit for this run" in ran.err
    assert "2 of 3 nodes in pool workers are unhealthy (66 %, limit 40 %). No repair will start" in ran.err
    document = json.loads(menagerie("--json", "--max-unhealthy", "40%").out)
    assert ([each["allowed"] for each in document["hosts"]], document["brakes"][0]["kind"]) == ([False, False], "pool")


def test_a_ticket_stays_until_an_operator_says_that_it_is_fixed(menagerie: Menagerie, fleet: World) -> None:
    silence(fleet, "worker-2")
    fleet.hosts["worker-2"].answers = False
    ran = menagerie("--yes", "--json")
    (host,) = json.loads(ran.out)["hosts"]
    assert (ran.code, host["end"], boots(fleet)) == (1, "ticket", [0, 0, 0])
    ran = menagerie("--yes")
    assert (ran.code, ran.out) == (1, "lab: 0 repaired, 1 left; checked 3 nodes\n")
    assert "worker-2: ticket: power-cycle it by hand" in ran.err
    fleet.hosts["worker-2"].answers = True
    ran = menagerie("--yes", "--retry", "worker-2")
    assert (ran.code, boots(fleet)) == (0, [0, 1, 0]), ran.err
    assert "worker-2: cleared: 0 repairs, and its ticket: power-cycle it by hand" in ran.err


def test_a_service_continues_after_temporary_errors(
    menagerie: Menagerie, fleet: World, monkeypatch: pytest.MonkeyPatch
) -> None:

    silence(fleet, "worker-2")
    rounds: list[float] = []

    def away(*_: object) -> str:
        if not rounds:
            raise TimedOutError("gave up after 3 s: the API server does not answer")
        return ""

    def sleep(seconds: float) -> None:
        rounds.append(seconds)
        if len(rounds) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("operations.repair.means.control_plane", away)
    between_rounds(monkeypatch, sleep)
    ran = menagerie("--watch", "30", "--yes")
    assert (ran.code, rounds, boots(fleet)) == (130, [30, 30, 30], [0, 1, 0]), ran.err
    assert re.search(r"Z ERROR cli\S+: gave up after 3 s", ran.err)
    assert ran.out == "lab: 1 repaired, 0 left; checked 3 nodes\nlab: nothing to repair; checked 3 nodes\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--watch", "30"), "--watch cannot ask: add --yes"),
        (("--max-removal", "lots"), "--max-removal"),
        (("--limit", "worker-9", "--yes"), "worker-9 matches no node"),
        (("--retry", "worker-9", "--yes"), "worker-9 matches no node"),
        (("--drain-timeout", "5x"), "--drain-timeout"),
    ],
)
def test_invalid_options_are_refused(menagerie: Menagerie, fleet: World, words: tuple[str, ...], message: str) -> None:
    ran = menagerie(*words)
    assert (ran.code, message in ran.err) == (2, True), ran.err
