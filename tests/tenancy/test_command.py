"""`menagerie tenancy` from its command line to a real API server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from clients.lease import Lease
from cluster.spec import Cluster
from controllers.tenancy.sync.run import LEASE
from tests.cli.terminal import Menagerie, Ran, between_rounds, command
from tests.tenancy.real import Server

pytestmark = pytest.mark.xdist_group("tenancy")

PEOPLE = "people: {ana: {}, bo: {}, cleo: {}}\nteams: {robotics: {members: [ana, bo], owners: [ana]}}\n"


@pytest.fixture
def menagerie(
    server: Server,
    build: Callable[..., Cluster],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> Menagerie:
    (tmp_path / "people.yaml").write_text(PEOPLE)
    monkeypatch.setattr("operations.stack.access_to", lambda *_: server)
    for module in ("cli.verbs.tenancy", "cli.verbs.status"):
        monkeypatch.setattr(f"{module}.cluster_folder", lambda _: tmp_path)

    def call(*words: str, typed: str | None = None, spec: dict[str, object] | None = None) -> Ran:
        tenancy = {"directory": {"file": "people.yaml"}} if spec is None else spec
        for module in ("cli.verbs.tenancy", "cli.verbs.status"):
            monkeypatch.setattr(f"{module}.checked", lambda _: build({"tenancy": tenancy or None}))
        line = ("status", "lab", "tenancy") if words[0] == "show" else ("tenancy", words[0], "lab")
        return command(monkeypatch, capsys)(*line, *words[1:], typed=typed)

    return call


def test_a_dry_run_lists_all_changes_and_makes_none(menagerie: Menagerie, server: Server) -> None:
    before = server.versions()
    ran = menagerie("sync", "--dry-run")
    # 4 namespaces, each with quota, limits and editors; the owners of the team, and their role once.
    assert (ran.code, ran.out) == (0, "lab: 18 changes would be made for 3 people, 1 teams\n")
    assert "+ person ana gets the namespace user-ana" in ran.err
    assert "apply RoleBinding team-robotics/menagerie:owners: team robotics joined" in ran.err
    assert server.versions() == before


def test_it_asks_makes_the_changes_and_then_has_nothing_to_do(menagerie: Menagerie, server: Server) -> None:
    ran = menagerie("sync")
    assert (ran.code, "./menagerie tenancy sync lab --yes" in ran.err) == (2, True)
    assert menagerie("sync", typed="n\n").code == 1
    ran = menagerie("sync", typed="y\n")
    assert (ran.code, "changes made; 3 people, 1 teams" in ran.out) == (0, True), ran.err
    ran = menagerie("sync")
    assert (ran.code, ran.out) == (0, "lab: matches the directory, 3 people, 1 teams; nothing to change\n")
    ran = menagerie("show")
    assert "team-robotics  team robotics  in use: ana, bo (owners: ana)" in ran.out


def test_people_who_left_are_frozen_and_shown_as_frozen(menagerie: Menagerie, server: Server, tmp_path: Path) -> None:
    assert menagerie("sync", "--yes").code == 0
    (tmp_path / "people.yaml").write_text(PEOPLE.replace(", cleo: {}", ""))
    reply = json.loads(menagerie("sync", "--json").out)
    assert reply["stories"] == [{"story": "left", "tenant": "person cleo", "namespace": "user-cleo"}]
    assert all(change["made"] for change in reply["changes"])
    rows = json.loads(menagerie("show", "--json").out)["namespaces"]
    assert [(row["namespace"], bool(row["frozen"])) for row in rows] == [
        ("team-robotics", False), ("user-ana", False), ("user-bo", False), ("user-cleo", True),
    ]  # fmt: skip


def test_a_halved_directory_is_refused_until_the_loss_is_accepted(
    menagerie: Menagerie, server: Server, tmp_path: Path
) -> None:
    assert menagerie("sync", "--yes").code == 0
    (tmp_path / "people.yaml").write_text("people: {ana: {}}\nteams: {robotics: {members: [ana]}}\n")
    ran = menagerie("sync", "--yes")
    assert (ran.code, ran.out) == (1, "lab: refused; nothing was changed; 1 people, 1 teams in the directory\n")
    assert "refused: 2 of 3 people are missing since 20" in ran.err
    assert "If they have left, run this with --accept-loss" in ran.err
    ran = menagerie("sync", "--yes", "--accept-loss")
    assert (ran.code, "- person bo has left: user-bo is frozen" in ran.err) == (0, True)
    assert "--accept-loss: the directory is trusted" in ran.err
    assert menagerie("sync", "--yes").code == 0


def test_a_file_with_errors_is_bad_input(menagerie: Menagerie, server: Server, tmp_path: Path) -> None:
    (tmp_path / "people.yaml").write_text("people: {ana: {}}\nteams: {robotics: {members: [anna]}}\n")
    ran = menagerie("sync", "--yes")
    assert (ran.code, "error[TEN-009] anna of team robotics is not in people" in ran.err) == (2, True)


def test_a_directory_that_is_down_and_a_spec_without_one_are_reported(menagerie: Menagerie) -> None:
    ldap = {"urls": ["ldaps://127.0.0.1:1"], "people": {"base": "o=x"}, "teams": {"base": "o=x"}}
    ran = menagerie("sync", "--json", spec={"directory": {"ldap": ldap}})
    error = json.loads(ran.out)["error"]
    assert (ran.code, error["code"]) == (1, "directory")
    assert "ldaps://127.0.0.1:1 does not answer: [Errno 111] Connection refused" in error["text"]
    ran = menagerie("sync", "--yes", spec={})
    assert (ran.code, "the spec of lab has no tenancy" in ran.err) == (2, True)


@pytest.mark.parametrize("words", [("--watch", "5"), ("--watch", "5", "--yes", "--accept-loss")])
def test_a_service_needs_yes_and_accepts_no_loss(menagerie: Menagerie, words: tuple[str, ...]) -> None:
    assert menagerie("sync", *words).code == 2


def test_a_second_service_is_refused_but_a_single_run_is_not(menagerie: Menagerie, server: Server) -> None:
    with Lease(server.api(), LEASE, "tenancy-sync-a_1").holding():
        ran = menagerie("sync", "--watch", "5", "--yes")
        assert (ran.code, "tenancy-sync-a_1 acts on this cluster as menagerie-tenancy-sync" in ran.err) == (3, True)
        assert menagerie("sync", "--yes").code == 0


def test_a_service_continues_after_a_passing_problem(
    menagerie: Menagerie, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "people.yaml").write_text("people: {ana: {}\n")
    rounds: list[float] = []

    def pause(seconds: float) -> None:
        rounds.append(seconds)
        (tmp_path / "people.yaml").write_text(PEOPLE)
        if len(rounds) == 3:
            raise KeyboardInterrupt

    between_rounds(monkeypatch, pause)
    ran = menagerie("sync", "--watch", "7", "--yes")
    assert (ran.code, rounds) == (130, [7, 7, 7])
    assert "error[CFG-011]" in ran.err
    assert "lab: matches the directory, 3 people, 1 teams; nothing to change" in ran.out
