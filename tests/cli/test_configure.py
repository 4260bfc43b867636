"""`configure` as somebody meets it: what it asks, prints and ends with. No worker is reached."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from inventories.batches import Amount
from inventories.report import Failure, HostReport, Progress, RunReport, Status
from operations import configure as operation
from operations.upgrade import guard
from tests.cli.terminal import Menagerie

DONE, BROKEN, LOST = HostReport(11, 2), HostReport(3, 0, 1), HostReport(0, 0, 0, 1)
GOOD = RunReport({"worker-1": DONE, "worker-2": HostReport(11)}, changes={"worker-1": ("Places files",)})
UNREACHABLE = RunReport(
    {"worker-1": DONE, "worker-2": LOST}, (Failure("worker-2", "base", "t", "<script>lost</script>", True),)
)
FAILED = RunReport({"worker-1": BROKEN}, (Failure("worker-1", "base", "t", "no space"),))

Ends = Callable[..., list[operation.Request]]


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Ends:
    """ends(report): how a run ends that begins; gives the requests that were made."""
    made: list[operation.Request] = []

    def plan(_: object, __: object, request: operation.Request) -> object:
        hosts = ("worker-1", "worker-2")
        return SimpleNamespace(request=request, hosts=hosts, left_out=(), batches=(hosts,), access=None)

    def begin(report: RunReport, why: str = "", work: object = None) -> list[operation.Request]:
        def act(work: SimpleNamespace, _: object, watch: Callable[[Progress], None]) -> tuple[RunReport, str]:
            made.append(work.request)
            watch(Progress("worker-1", "kubelet", "t", Status.OK, 1, 1, is_last=True))
            return report, why

        monkeypatch.setattr(operation, "configure", act)
        if work:
            monkeypatch.setattr(operation, "plan", lambda *_: work)
        return made

    monkeypatch.setattr(operation, "refuse", lambda *_: None)
    monkeypatch.setattr(operation, "plan", plan)
    monkeypatch.setattr(operation, "tokens", lambda *_: None)
    monkeypatch.setattr("operations.stack.access_to", lambda *_: None)
    monkeypatch.setattr(guard, "other_release", lambda *_: "")
    monkeypatch.setattr(guard, "other_workers", lambda *_: frozenset())
    return begin


def test_it_does_not_begin_without_a_yes(menagerie: Menagerie, ends: Ends) -> None:
    made = ends(GOOD)
    ran = menagerie("configure", "lab")
    assert (ran.code, made) == (2, [])
    assert "./menagerie configure lab --yes" in ran.err
    refused = menagerie("configure", "lab", typed="n\n")
    assert (refused.code, made) == (1, [])
    assert "Configure 2 hosts? [y/N]" in refused.err
    assert menagerie("configure", "lab", typed="y\n").code == 0
    assert len(made) == 1


def test_workers_of_another_release_are_left_to_upgrade(
    menagerie: Menagerie, ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = ends(GOOD)
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(
        guard, "other_workers", lambda cluster, access, roles: asked.append(roles) or frozenset({"worker-3"})
    )
    ran = menagerie("configure", "lab", "--yes")
    assert (ran.code, made[0].leaves) == (0, {"worker-3"})
    assert "left out (worker-3); drained, by ./menagerie upgrade lab" in ran.err
    menagerie("configure", "lab", "--tags", "containerd", "--yes")
    assert (asked, made[1].leaves) == ([(), ("containerd",)], {"worker-3"})


def test_a_look_is_at_workers_of_another_release_too(
    menagerie: Menagerie, ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = ends(GOOD)
    monkeypatch.setattr(guard, "other_workers", lambda *_: frozenset({"worker-3"}))
    ran = menagerie("configure", "lab", "--dry-run")
    assert (ran.code, made[0].leaves) == (0, frozenset())
    assert "left out" not in ran.err


def test_workers_of_api_servers_of_another_release_are_left_alone(
    menagerie: Menagerie, ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = ends(GOOD)
    monkeypatch.setattr(guard, "other_release", lambda *_: "run ./menagerie upgrade lab")
    ran = menagerie("configure", "lab", "--yes")
    assert (ran.code, made) == (2, [])
    assert "run ./menagerie upgrade lab" in ran.err


def test_a_look_asks_nothing(menagerie: Menagerie, ends: Ends) -> None:
    made = ends(GOOD)
    ran = menagerie("configure", "lab", "--dry-run", "--diff")
    assert (ran.code, made[0].check, made[0].diff) == (0, True, True)
    assert "1 would change" in ran.out
    assert "worker-1: Places files" in ran.out


def test_every_option_reaches_the_run(menagerie: Menagerie, ends: Ends) -> None:
    made = ends(GOOD)
    options = (
        "--limit",
        "w*",
        "--tags",
        "base,kubelet",
        "--resume",
        "--parallel",
        "5%",
        "--max-failures",
        "3",
        "--yes",
    )
    assert menagerie("configure", "lab", *options).code == 0
    assert made == [operation.Request("w*", ("base", "kubelet"), False, False, True, Amount(5, True), Amount(3))]


@pytest.mark.parametrize(
    ("report", "code", "word"), [(FAILED, 1, "workers-failed"), (UNREACHABLE, 4, "workers-unreachable")]
)
def test_it_ends_as_the_workers_step_of_up_and_json_has_both_report_and_error(
    menagerie: Menagerie, ends: Ends, report: RunReport, code: int, word: str
) -> None:
    ends(report)
    assert menagerie("configure", "lab", "--yes").code == code
    ran = menagerie("configure", "lab", "--json")
    assert ran.code == code
    assert ran.json["error"]["code"] == word
    assert ran.json["groups"][0]["message"] == report.failures[0].message
    assert set(ran.json["hosts"]) == set(report.hosts)


def test_an_interrupt_ends_with_130_and_leaves_a_report(menagerie: Menagerie, ends: Ends, tmp_path: Path) -> None:
    ends(RunReport({"worker-1": DONE}, canceled=True, not_begun=("worker-2",)))
    page = tmp_path / "run.html"
    ran = menagerie("configure", "lab", "--yes", "--report", str(page))
    assert ran.code == 130
    assert "it goes on" in ran.err
    assert "The run was cut off" in page.read_text()


def test_the_page_is_written_also_after_a_failure_and_runs_nothing(
    menagerie: Menagerie, ends: Ends, tmp_path: Path
) -> None:
    ends(UNREACHABLE)
    page = tmp_path / "run.html"
    menagerie("configure", "lab", "--yes", "--report", str(page))
    text = page.read_text()
    assert "&lt;script&gt;lost&lt;/script&gt;" in text
    assert [word for word in ("<script", "http://", "https://", "<link", "<img") if word in text] == []


def test_hosts_that_are_done_leave_nothing_to_ask_about(menagerie: Menagerie, ends: Ends) -> None:
    request = operation.Request(resume=True)
    made = ends(GOOD, work=SimpleNamespace(request=request, hosts=(), left_out=("worker-1",), batches=(), access=None))
    ran = menagerie("configure", "lab", "--resume")
    assert (ran.code, made) == (0, [])
    assert "nothing to do" in ran.out


@pytest.mark.parametrize("option", [("--parallel", "0"), ("--max-failures", "101%"), ("--parallel", "many")])
def test_a_number_of_hosts_that_is_none_is_refused(menagerie: Menagerie, ends: Ends, option: tuple[str, str]) -> None:
    made = ends(GOOD)
    ran = menagerie("configure", "lab", "--yes", *option)
    assert (ran.code, made) == (2, [])
    assert "write 50 or 10%" in ran.err


def test_a_cluster_that_was_never_built_is_told_so(menagerie: Menagerie, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operation, "has_stack", lambda _: False)
    ran = menagerie("configure", "lab", "--yes")
    assert ran.code == 1
    assert "./menagerie up lab" in ran.err


def test_a_role_that_is_none_is_refused_before_anything_is_read(menagerie: Menagerie) -> None:
    ran = menagerie("configure", "lab", "--tags", "neighbors")
    assert ran.code == 2
    assert "did you mean neighbours" in ran.err
