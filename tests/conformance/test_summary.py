"""The summary of a run, from reports that ginkgo wrote (`junit_together_01.xml`: tests that passed, failed and skipped)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance import junit, plan
from tests.conformance.junit import Report, Result
from tests.conformance.summary import summary, text

SAMPLE = Path(__file__).with_name("junit_together_01.xml")
PASSED = "[sig-apps] Job should delete a job [Conformance]"
FAILED = "[sig-apps] Job should adopt matching orphans and release non-matching pods [Conformance]"
SKIPPED = "[sig-apps] Job should run a job to completion on Windows [Conformance]"
ALONE = (
    "[sig-node] NoExecuteTaintManager Single Pod [Serial] removing taint cancels eviction [Disruptive] [Conformance]"
)


def test_a_ginkgo_report_is_read() -> None:
    report = junit.read(SAMPLE)
    states = {result.test: result.state for result in report.results}
    assert (states[PASSED], states[FAILED], states[SKIPPED], states[ALONE]) == (
        "passed",
        "failed",
        "skipped",
        "skipped",
    )
    (failed,) = [result for result in report.results if result.test == FAILED]
    assert "waiting for the pod" in failed.message
    assert report.other_failures == ()


@pytest.mark.parametrize("cut", [0, 300])
def test_a_truncated_report_is_an_error(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "junit.xml"
    path.write_text(SAMPLE.read_text()[:cut])
    with pytest.raises(junit.ReportError):
        junit.read(path)
    with pytest.raises(junit.ReportError):
        junit.read(tmp_path / "other.xml")


def test_a_summary_follows_the_plan_and_not_the_reports() -> None:
    planned = plan.plan([PASSED, FAILED, SKIPPED, ALONE, "[sig-x] lost [Conformance]"], ())
    outcome = summary(planned, [(planned.together, junit.read(SAMPLE))])
    assert [result.test for result in outcome.passed] == [PASSED]
    assert [result.test for result in outcome.failed] == [FAILED]
    assert [result.test for result in outcome.skipped] == [SKIPPED]
    assert outcome.missing == ("[sig-x] lost [Conformance]", ALONE)
    assert not outcome.good


def test_a_run_is_good_only_if_every_planned_test_has_passed() -> None:
    planned = plan.plan([PASSED, ALONE], ())
    parts = [(planned.together, junit.read(SAMPLE)), (planned.alone, Report((Result(ALONE, "passed"),), ()))]
    assert summary(planned, parts).good
    assert not summary(planned, parts[:1]).good
    assert not summary(plan.plan([], ()), []).good


def test_a_run_with_a_failed_suite_setup_is_not_good() -> None:
    planned = plan.plan([PASSED], ())
    broken = Report((Result(PASSED, "passed"),), (Result("[SynchronizedBeforeSuite]", "failed", message="no nodes"),))
    outcome = summary(planned, [(planned.together, broken)])
    assert not outcome.good
    assert "failed outside tests: [SynchronizedBeforeSuite]\n    no nodes" in text(outcome)


def test_the_text_lists_problems_and_ends_with_the_numbers() -> None:
    planned = plan.plan([PASSED, FAILED, ALONE], [plan.Row(ALONE, "one kernel")])
    lines = text(summary(planned, [(planned.together, junit.read(SAMPLE))])).splitlines()
    assert f"failed: {FAILED}" in lines
    assert lines[lines.index(f"left out: {ALONE}") + 1] == "    one kernel"
    assert lines[-1] == "1 passed, 1 failed, 0 skipped themselves, 0 never ran, 1 left out"
