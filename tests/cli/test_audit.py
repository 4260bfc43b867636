"""`audit`: its output and exit codes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from cluster.audit.controls import controls
from cluster.audit.evidence import Attempt, Evidence, Kind, Unseen
from operations import audit as operation
from operations import trials
from tests.cli.terminal import Menagerie

SILENT = Attempt("M.8", "worker-1 → etcd-main-1 10.77.0.21:2379", True, "silent")
OPEN = replace(SILENT, ok=False, outcome="open")
Observe = Callable[[Evidence], None]


@pytest.fixture
def observe(monkeypatch: pytest.MonkeyPatch) -> Observe:
    """observe(evidence): let `audit` see this evidence of the lab."""

    def given(evidence: Evidence) -> None:
        monkeypatch.setattr("operations.stack.has_stack", lambda _: True)
        monkeypatch.setattr(operation, "collect_evidence", lambda *_: evidence)

    return given


def test_every_control_has_a_line_and_unseen_ones_are_counted(menagerie: Menagerie, observe: Observe) -> None:
    observe(Evidence(attempts=(SILENT,)))
    ran = menagerie("audit", "lab")
    assert ran.code == 4
    assert "pass       M.8    Workers can't reach etcds" in ran.out
    assert "not seen   1.2.1  Anonymous requests are answered only on health paths" in ran.out
    *_, last = ran.out.splitlines()
    assert [int(word) for word in last.split()[1:]] == [1, len(controls()) - 1]


def test_a_failure_is_shown_with_its_evidence_and_exits_with_1(menagerie: Menagerie, observe: Observe) -> None:
    observe(Evidence(attempts=(OPEN,)))
    ran = menagerie("audit", "lab", "--failed")
    assert ran.code == 1
    first, second, third, *_ = ran.out.splitlines()
    assert first == "M  our own"
    assert second == "fail       M.8    Workers can't reach etcds"
    assert third.strip() == "worker-1 → etcd-main-1 10.77.0.21:2379: open"
    assert "1.2.1" not in ran.out


@pytest.mark.parametrize(("expected", "code"), [(True, 0), (False, 4)])
def test_an_unreachable_host_exits_with_4_unless_by_design(
    menagerie: Menagerie, observe: Observe, expected: bool, code: int
) -> None:
    unseen = (Unseen(Kind.WORKER, "worker-2", "No route to host", expected),)
    observe(Evidence(attempts=(SILENT,), unseen=unseen))
    ran = menagerie("audit", "lab", "--section", "4.1,M.8", "--json")
    assert (ran.code, ran.json["ok"], ran.json["unreachable"]) == (code, expected, [] if expected else ["worker-2"])
    assert ran.json["unseen"]["by_design" if expected else "not_accepted"] == [f"4.1.{n}" for n in range(1, 11)]
    observe(Evidence(attempts=(OPEN,), unseen=unseen))
    assert menagerie("audit", "lab").code == 1


def test_an_unseen_control_is_no_success_and_the_message_says_where_to_look(
    menagerie: Menagerie, observe: Observe
) -> None:
    observe(Evidence(attempts=(SILENT,), audit_logs="the bucket does not answer"))
    ran = menagerie("audit", "lab", "--section", "M.8,M.24", "--failed")
    assert ran.code == 4
    assert "error: 1 control could not be seen, so it is unknown whether the cluster meets it: M.24" in ran.err
    assert "./menagerie audit lab --section M.24" in ran.err
    assert "the bucket does not answer" in menagerie("audit", "lab", "--section", "M.24").out


def test_accept_unseen_names_the_controls_that_may_stay_unseen(menagerie: Menagerie, observe: Observe) -> None:
    observe(Evidence(attempts=(SILENT,)))
    ran = menagerie("audit", "lab", "--section", "M.8,M.9,M.10", "--accept-unseen", "M.9,M.10", "--json")
    assert (ran.code, ran.json["ok"], ran.err) == (0, True, "")
    assert ran.json["unseen"] == {"by_design": [], "accepted": ["M.9", "M.10"], "not_accepted": []}
    ran = menagerie("audit", "lab", "--section", "M.8,M.9,M.10", "--accept-unseen", "M.1", "--json")
    assert (ran.code, ran.json["unseen"]["not_accepted"]) == (4, ["M.9", "M.10"])
    observe(Evidence(attempts=(OPEN,)))
    assert menagerie("audit", "lab", "--section", "M.8", "--accept-unseen", "M.8").code == 1


def test_attempts_of_workers_at_sites_are_unseen_by_design_without_sites(
    menagerie: Menagerie, observe: Observe
) -> None:
    controls_ = ("M.8", "M.9", "M.10", "M.27")
    observe(Evidence(attempts=tuple(trials.without_sources(trials.NO_SITE, controls_, expected=True))))
    ran = menagerie("audit", "lab", "--section", ",".join(controls_), "--json")
    assert (ran.code, ran.json["unseen"]["by_design"]) == (0, list(controls_))
    observe(Evidence(attempts=tuple(trials.without_sources("no worker at a site answers", controls_))))
    assert menagerie("audit", "lab", "--section", ",".join(controls_)).code == 4


def test_a_section_is_selected_by_a_prefix_of_ids(menagerie: Menagerie, observe: Observe) -> None:
    observe(Evidence(attempts=(OPEN,)))
    ran = menagerie("audit", "lab", "--section", "1.2,5.3", "--json")
    ids = [result["id"] for result in ran.json["results"]]
    assert ids == [*(f"1.2.{number}" for number in range(1, 31)), "5.3.1", "5.3.2"]
    assert (ran.code, ran.json["ok"], list(ran.json["counts"])) == (4, False, ["1.2", "5"])


@pytest.mark.parametrize("option", ["--section", "--accept-unseen"])
def test_an_unknown_section_is_refused_before_the_cluster_is_contacted(menagerie: Menagerie, option: str) -> None:
    ran = menagerie("audit", "lab", option, "1.9")
    assert ran.code == 2
    assert "no control starts with 1.9; docs/reference/audit.md lists them" in ran.err


def test_json_can_be_limited_to_failures(menagerie: Menagerie, observe: Observe) -> None:
    observe(Evidence(attempts=(OPEN,)))
    ran = menagerie("audit", "lab", "--failed", "--json")
    assert [result["id"] for result in ran.json["results"]] == ["M.8"]
    assert ran.json["counts"]["1.2"] == {"not seen": 30}
