"""`configure`: its question, output and exit codes. No worker is contacted."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from cluster.revision import revision
from inventories.batches import Amount
from inventories.report import Failure, HostReport, Progress, RunReport, TaskStatus
from operations import configure as operation
from operations.upgrade import guard
from tests.cli.terminal import Menagerie

DONE, BROKEN, LOST = HostReport(11, 2), HostReport(3, 0, 1), HostReport(0, 0, 0, 1)
GOOD = RunReport({"worker-1": DONE, "worker-2": HostReport(11)}, changes={"worker-1": ("Places files",)})
UNREACHABLE = RunReport(
    {"worker-1": DONE, "worker-2": LOST}, (Failure("worker-2", "base", "t", "<script>lost</script>", True),)
)
FAILED = RunReport({"worker-1": BROKEN}, (Failure("worker-1", "base", "t", "no space"),))

Ends = Callable[..., list[operation.PlaybookRequest]]


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Ends:
    """ends(report): let runs end with this report. Returns the list of requests."""
    requests: list[operation.PlaybookRequest] = []

    def plan(_: object, __: object, request: operation.PlaybookRequest) -> object:
        hosts = ("worker-1", "worker-2")
        return SimpleNamespace(request=request, hosts=hosts, left_out=(), batches=(hosts,), access=None)

    def begin(report: RunReport, why: str = "", work: object = None) -> list[operation.PlaybookRequest]:
        def act(work: SimpleNamespace, _: object, watch: Callable[[Progress], None]) -> tuple[RunReport, str]:
            requests.append(work.request)
            watch(Progress("worker-1", "kubelet", "t", TaskStatus.OK, 1, 1, is_last=True))
            return report, why

        monkeypatch.setattr(operation, "configure", act)
        if work:
            monkeypatch.setattr(operation, "plan", lambda *_: work)
        return requests

    monkeypatch.setattr(operation, "refuse", lambda *_: None)
    monkeypatch.setattr(operation, "plan", plan)
    monkeypatch.setattr(operation, "tokens", lambda *_: None)
    monkeypatch.setattr("operations.stack.access_to", lambda *_: None)
    monkeypatch.setattr(guard, "other_release", lambda *_: "")
    monkeypatch.setattr(guard, "other_workers", lambda *_: frozenset())
    return begin


def test_it_does_not_start_without_a_yes(menagerie: Menagerie, ends: Ends) -> None:
    requests = ends(GOOD)
    ran = menagerie("configure", "lab")
    assert (ran.code, requests) == (2, [])
    assert "./menagerie configure lab --yes" in ran.err
    refused = menagerie("configure", "lab", typed="n\n")
    assert (refused.code, requests) == (1, [])
    assert "Configure 2 hosts? [y/N]" in refused.err
    assert menagerie("configure", "lab", typed="y\n").code == 0
    assert len(requests) == 1


def test_workers_of_another_release_are_left_to_upgrade(
    menagerie: Menagerie, ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = ends(GOOD)
    roles_asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(
        guard, "other_workers", lambda cluster, access, roles: roles_asked.append(roles) or frozenset({"worker-3"})
    )
    ran = menagerie("configure", "lab", "--yes")
    assert (ran.code, requests[0].leaves) == (0, {"worker-3"})
    assert "left out (worker-3); to drain and upgrade them, run: ./menagerie upgrade lab" in ran.err
    menagerie("configure", "lab", "--tags", "containerd", "--yes")
    assert (roles_asked, requests[1].leaves) == ([(), ("containerd",)], {"worker-3"})


def test_a_dry_run_includes_workers_of_another_release(
    menagerie: Menagerie, ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = ends(GOOD)
    monkeypatch.setattr(guard, "other_workers", lambda *_: frozenset({"worker-3"}))
    ran = menagerie("configure", "lab", "--dry-run")
    assert (ran.code, requests[0].leaves) == (0, frozenset())
    assert "left out" not in ran.err


def test_it_is_refused_if_api_servers_run_another_release(
    menagerie: Menagerie, ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = ends(GOOD)
    monkeypatch.setattr(guard, "other_release", lambda *_: "run ./menagerie upgrade lab")
    ran = menagerie("configure", "lab", "--yes")
    assert (ran.code, requests) == (2, [])
    assert "run ./menagerie upgrade lab" in ran.err


def test_a_dry_run_asks_nothing(menagerie: Menagerie, ends: Ends) -> None:
    requests = ends(GOOD)
    ran = menagerie("configure", "lab", "--dry-run", "--diff")
    assert (ran.code, requests[0].check, requests[0].diff) == (0, True, True)
    assert "1 would change" in ran.out
    assert "worker-1: Places files" in ran.out


def test_every_option_reaches_the_run(menagerie: Menagerie, ends: Ends) -> None:
    requests = ends(GOOD)
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
    assert requests == [
        operation.PlaybookRequest("w*", ("base", "kubelet"), False, False, True, Amount(5, True), Amount(3))
    ]


@pytest.mark.parametrize(
    ("report", "code", "word"), [(FAILED, 1, "workers-failed"), (UNREACHABLE, 4, "workers-unreachable")]
)
def test_it_exits_like_the_workers_step_of_up_and_json_has_report_and_error(
    menagerie: Menagerie, ends: Ends, report: RunReport, code: int, word: str
) -> None:
    ends(report)
    assert menagerie("configure", "lab", "--yes").code == code
    ran = menagerie("configure", "lab", "--json")
    assert ran.code == code
    assert ran.json["error"]["code"] == word
    assert ran.json["groups"][0]["message"] == report.failures[0].message
    assert set(ran.json["hosts"]) == set(report.hosts)


def test_an_interrupt_exits_with_130_and_leaves_a_report(menagerie: Menagerie, ends: Ends, tmp_path: Path) -> None:
    ends(RunReport({"worker-1": DONE}, canceled=True, not_begun=("worker-2",)))
    page = tmp_path / "run.html"
    ran = menagerie("configure", "lab", "--yes", "--report", str(page))
    assert ran.code == 130
    assert "run the same command again to continue" in ran.err
    assert "The run was interrupted" in page.read_text()


def test_the_page_is_written_even_after_a_failure_and_runs_no_script(
    menagerie: Menagerie, ends: Ends, tmp_path: Path
) -> None:
    ends(UNREACHABLE)
    page = tmp_path / "run.html"
    menagerie("configure", "lab", "--yes", "--report", str(page))
    text = page.read_text()
    assert "&lt;script&gt;lost&lt;/script&gt;" in text
    assert [word for word in ("<script", "http://", "https://", "<link", "<img") if word in text] == []


def test_the_page_says_who_ran_it_with_which_options_and_from_which_commit(
    menagerie: Menagerie, ends: Ends, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends(GOOD)
    monkeypatch.setattr("operations.record.holder._user", lambda: "mia")
    page = tmp_path / "run.html"
    options = ("--limit", "w*", "--tags", "base", "--parallel", "5%", "--max-failures", "3", "--resume")
    menagerie("configure", "lab", *options, "--yes", "--report", str(page))
    text = page.read_text()
    assert f"mia@{socket.gethostname()}" in text
    assert "./menagerie configure lab --limit &#39;w*&#39; --tags base --resume --parallel 5% --max-failures 3<" in text
    assert str(revision()) in text


def test_a_record_has_the_options_and_the_commit_of_a_run(menagerie: Menagerie, ends: Ends) -> None:
    ends(GOOD)
    menagerie("configure", "lab", "--limit", "w*", "--resume", "--yes")
    (record,) = menagerie("status", "lab", "operations", "--json").json["past"]
    assert (record["about"], record["options"]) == ("--limit 'w*'", "--limit 'w*' --resume")
    assert record["toolkit"] == str(revision())


def test_it_asks_nothing_if_all_hosts_are_done(menagerie: Menagerie, ends: Ends) -> None:
    request = operation.PlaybookRequest(resume=True)
    requests = ends(
        GOOD, work=SimpleNamespace(request=request, hosts=(), left_out=("worker-1",), batches=(), access=None)
    )
    ran = menagerie("configure", "lab", "--resume")
    assert (ran.code, requests) == (0, [])
    assert "nothing to do" in ran.out


@pytest.mark.parametrize("option", [("--parallel", "0"), ("--max-failures", "101%"), ("--parallel", "many")])
def test_an_invalid_number_of_hosts_is_refused(menagerie: Menagerie, ends: Ends, option: tuple[str, str]) -> None:
    requests = ends(GOOD)
    ran = menagerie("configure", "lab", "--yes", *option)
    assert (ran.code, requests) == (2, [])
    assert "write 50 or 10%" in ran.err


def test_an_unbuilt_cluster_is_refused_with_the_command_that_builds_it(
    menagerie: Menagerie, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operation, "has_stack", lambda _: False)
    ran = menagerie("configure", "lab", "--yes")
    assert ran.code == 1
    assert "./menagerie up lab" in ran.err


def test_an_unknown_role_is_refused_before_anything_is_read(menagerie: Menagerie) -> None:
    ran = menagerie("configure", "lab", "--tags", "neighbors")
    assert ran.code == 2
    assert "did you mean neighbours" in ran.err
