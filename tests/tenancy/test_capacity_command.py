"""`menagerie tenancy sync --hosts` and the hosts in `status CLUSTER tenancy`, from the command line to a real API server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.allocations import BORROWED
from cluster.spec import Cluster
from tests.cli.terminal import Menagerie, Ran, between_rounds, command
from tests.tenancy import hosts
from tests.tenancy.hosts import of_pools, run_on, teams
from tests.tenancy.real import Server
from tests.tenancy.test_plan import roster
from tests.waiting import until

pytestmark = pytest.mark.xdist_group("tenancy")

PEOPLE = "people: {ana: {}, bo: {}}\nteams: {robotics: {members: [ana]}, vision: {members: [bo]}}\n"
ALL = roster("ana bo", robotics="ana", vision="bo")


@pytest.fixture
def menagerie(
    server: Server,
    build: Callable[..., Cluster],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Menagerie]:
    (tmp_path / "people.yaml").write_text(PEOPLE)
    monkeypatch.setattr("operations.stack.access_to", lambda *_: server)
    for module in ("cli.verbs.tenancy", "cli.verbs.status"):
        monkeypatch.setattr(f"{module}.cluster_folder", lambda _: tmp_path)
    first = of_pools(build, {"workers": 3})
    assert first.spec.tenancy
    server.sync(ALL, first.spec.tenancy)
    hosts.join(server, "workers-0", "workers-1", "workers-2")

    def call(*words: str, typed: str | None = None, **given: int) -> Ran:
        cluster = of_pools(build, {"workers": 3}, *(("workers", team, count) for team, count in given.items()))
        for module in ("cli.verbs.tenancy", "cli.verbs.status", "cli.actions.tenancy_capacity"):
            monkeypatch.setattr(f"{module}.checked", lambda _: cluster)
        line = ("status", "lab", "tenancy") if words[0] == "show" else ("tenancy", words[0], "lab")
        return command(monkeypatch, capsys)(*line, *words[1:], typed=typed)

    yield call
    hosts.clear(server)


def test_a_dry_run_lists_every_move_and_changes_nothing(menagerie: Menagerie, server: Server) -> None:
    ran = menagerie("sync", "--hosts", "--dry-run", robotics=2)
    # The class, five policies, each with its binding, and two hosts.
    assert (ran.code, ran.out) == (0, "lab: 13 changes would be made\n")
    assert "workers-0: everybody -> robotics: robotics has an allocation of 2 hosts of workers" in ran.err
    assert set(teams(server).values()) == {("", "")}


def test_it_asks_makes_the_moves_and_then_has_nothing_to_do(menagerie: Menagerie, server: Server) -> None:
    ran = menagerie("sync", "--hosts", robotics=2)
    assert (ran.code, "./menagerie tenancy sync lab --hosts --yes" in ran.err) == (2, True)
    assert menagerie("sync", "--hosts", robotics=2, typed="n\n").code == 1
    ran = menagerie("sync", "--hosts", robotics=2, typed="y\n")
    assert (ran.code, ran.out) == (0, "lab: 13 changes made\n"), ran.err
    ran = menagerie("sync", "--hosts", robotics=2)
    assert (ran.code, ran.out) == (0, "lab: hosts match allocations; nothing to change\n")


def test_a_large_loss_at_once_must_be_accepted(menagerie: Menagerie, server: Server) -> None:
    assert menagerie("sync", "--hosts", "--yes", robotics=2).code == 0
    ran = menagerie("sync", "--hosts", "--yes", vision=2)
    assert (ran.code, ran.out) == (1, "lab: refused; nothing was changed\n")
    assert "refused: 2 of the teams' 2 hosts would be taken from them" in ran.err
    assert teams(server)["workers-0"] == ("robotics", "robotics")
    assert menagerie("sync", "--hosts", "--yes", "--accept-loss", vision=2).code == 0


def test_waiting_moves_name_their_pods_and_borrowers_are_shown(menagerie: Menagerie, server: Server) -> None:
    assert menagerie("sync", "--hosts", "--yes", robotics=3).code == 0
    for number in range(3):
        run_on(server, f"workers-{number}", "team-robotics", f"train-{number}")
    until(lambda: hosts.gives_time(server, "team-vision", 120))
    run_on(server, "workers-0", "team-vision", "spare", priorityClassName=BORROWED)
    ran = menagerie("sync", "--hosts", "--yes", robotics=2, vision=1)
    assert (ran.code, ran.out) == (0, "lab: 1 changes made; 1 hosts wait for pods to end\n")
    assert "workers-2: robotics -> vision (closed to others)" in ran.err
    assert "; waits for team-robotics/train-2" in ran.err
    assert "to evict the pods that they wait for: ./menagerie tenancy sync lab --hosts --evict" in ran.err
    ran = menagerie("show", robotics=2, vision=1)
    assert "workers  robotics  2 of 2 hosts: workers-0 (borrowed by team-vision/spare), workers-1\n" in ran.out
    assert "workers  vision  1 of 1 hosts: workers-2 (waits for team-robotics/train-2)\n" in ran.out
    rows: list[dict[str, Any]] = json.loads(menagerie("show", "--json", robotics=2, vision=1).out)["pools"]
    assert [(row["team"], row["allocated"], len(row["hosts"])) for row in rows] == [
        ("robotics", 2, 2),
        ("vision", 1, 1),
    ]


def test_an_unknown_team_is_reported_and_the_others_get_their_hosts(menagerie: Menagerie, server: Server) -> None:
    reply = json.loads(menagerie("sync", "--hosts", "--json", ghost=1, robotics=1).out)
    assert [text.partition(",")[0] for text in reply["conflicts"]] == ["ghost has no namespace"]
    assert [(move["host"], move["after"], move["made"]) for move in reply["moves"]] == [("workers-0", "robotics", True)]
    assert menagerie("sync", "--hosts", "--yes", ghost=1, robotics=1).code == 1


@pytest.mark.parametrize("words", [("--watch", "5"), ("--watch", "5", "--yes", "--accept-loss")])
def test_a_service_needs_yes_and_accepts_no_loss(menagerie: Menagerie, words: tuple[str, ...]) -> None:
    assert menagerie("sync", "--hosts", *words).code == 2


def test_a_service_gives_a_joining_host_to_its_team(
    menagerie: Menagerie, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.real.call("DELETE", "/api/v1/nodes/workers-2")
    rounds: list[float] = []

    def pause(seconds: float) -> None:
        rounds.append(seconds)
        if len(rounds) == 1:
            hosts.join(server, "workers-2")
        if len(rounds) == 2:
            raise KeyboardInterrupt

    between_rounds(monkeypatch, pause)
    ran = menagerie("sync", "--hosts", "--watch", "7", "--yes", robotics=3)
    assert (ran.code, rounds) == (130, [7, 7])
    assert teams(server)["workers-2"] == ("robotics", "robotics")
