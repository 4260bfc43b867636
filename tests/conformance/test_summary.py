"""What a run came to, from reports that ginkgo wrote (`junit_together_01.xml`: a test that passed, failed and skipped itself)."""

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


def test_a_report_of_ginkgos_is_read() -> None:
    report = junit.read(SAMPLE)
    states = {result.test: result.state for result in report.results}
    assert (states[PASSED], states[FAILED], states[SKIPPED], states[ALONE]) == (
        "passed",
        "failed",
        "skipped",
        "skipped",
    )
    (failed,) = [result for result in report.results if result.test == FAILED]
    assert "waiting for the pod" in failed.said
    assert report.beside == ()


@pytest.mark.parametrize("cut", [0, 300])
def test_a_report_that_is_cut_short_is_none(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "junit.xml"
    path.write_text(SAMPLE.read_text()[:cut])
    with pytest.raises(junit.ReportError):
        junit.read(path)
    with pytest.raises(junit.ReportError):
        junit.read(tmp_path / "other.xml")


def test_a_run_is_summed_up_by_the_plan_and_not_by_what_reports_name() -> None:
    planned = plan.plan([PASSED, FAILED, SKIPPED, ALONE, "[sig-x] lost [Conformance]"], ())
    told = summary(planned, [(planned.together, junit.read(SAMPLE))])
    assert [result.test for result in told.passed] == [PASSED]
    assert [result.test for result in told.failed] == [FAILED]
    assert [result.test for result in told.skipped] == [SKIPPED]
    assert told.missing == ("[sig-x] lost [Conformance]", ALONE)
    assert not told.good


def test_a_run_is_good_only_where_all_that_was_planned_has_passed() -> None:
    planned = plan.plan([PASSED, ALONE], ())
    parts = [(planned.together, junit.read(SAMPLE)), (planned.alone, Report((Result(ALONE, "passed"),), ()))]
    assert summary(planned, parts).good
    assert not summary(planned, parts[:1]).good
    assert not summary(plan.plan([], ()), []).good


def test_a_failed_preparation_of_the_suite_is_no_good_run() -> None:
    planned = plan.plan([PASSED], ())
    broken = Report((Result(PASSED, "passed"),), (Result("[SynchronizedBeforeSuite]", "failed", said="no nodes"),))
    told = summary(planned, [(planned.together, broken)])
    assert not told.good
    assert "wrong beside tests: [SynchronizedBeforeSuite]\n    no nodes" in text(told)


def test_the_text_names_what_is_wrong_and_ends_with_the_numbers() -> None:
    planned = plan.plan([PASSED, FAILED, ALONE], [plan.Row(ALONE, "one kernel")])
    told = text(summary(planned, [(planned.together, junit.read(SAMPLE))])).splitlines()
    assert f"failed: {FAILED}" in told
    assert told[told.index(f"left out: {ALONE}") + 1] == "    one kernel"
    assert told[-1] == "1 passed, 1 failed, 0 skipped by themselves, 0 never ran, 1 left out"
