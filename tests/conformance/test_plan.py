"""Which tests of the suite run, and the list of those that do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance import plan
from tests.conformance.plan import ListError, Row

JOB = "[sig-apps] Job should delete a job [Conformance]"
TAINT = (
    "[sig-node] NoExecuteTaintManager Single Pod [Serial] removing taint cancels eviction [Disruptive] [Conformance]"
)
SCHEDULER = "[sig-scheduling] SchedulerPreemption [Serial] validates basic preemption works [Conformance]"
DNS = "[sig-network] DNS should provide DNS for the cluster [Conformance]"
SUITE = (JOB, TAINT, SCHEDULER, DNS)


def written(folder: Path, text: str) -> Path:
    path = folder / "left_out.yaml"
    path.write_text(text)
    return path


def test_tests_that_disturb_others_run_alone() -> None:
    planned = plan.plan(SUITE, ())
    assert (planned.together, planned.alone, planned.left_out) == ((JOB, DNS), (TAINT, SCHEDULER), ())


def test_a_test_that_is_left_out_has_a_reason_and_does_not_run() -> None:
    planned = plan.plan(SUITE, [Row("[sig-node] NoExecuteTaintManager *", "one kernel"), Row(JOB, "why")])
    assert planned.all == (DNS, SCHEDULER)
    assert planned.left_out == ((JOB, "why"), (TAINT, "one kernel"))


def test_a_row_that_matches_no_test_is_refused() -> None:
    with pytest.raises(ListError, match=r"doesn't have: \[sig-apps\] Job should fly"):
        plan.plan(SUITE, [Row("[sig-apps] Job should fly [Conformance]", "why")])


def test_rows_are_checked_against_the_whole_suite_even_if_a_part_is_requested() -> None:
    planned = plan.plan(SUITE, [Row(TAINT, "why")], selected=[DNS])
    assert (planned.all, planned.left_out) == ((DNS,), ())


def test_brackets_and_dots_of_a_name_are_literal() -> None:
    assert not Row("[sig-apps] Job should delete a job [Conformance", "").names(JOB)
    assert not Row("[sig.apps] *", "").names(JOB)
    assert Row("* should delete * [Conformance]", "").names(JOB)


def test_rows_are_read(tmp_path: Path) -> None:
    rows = plan.read(written(tmp_path, f'- test: "{JOB}"\n  reason: why\n'))
    assert rows == (Row(JOB, "why"),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: b\n", "is not a list"),
        ("- {test: x}\n", "row 1: give a test and a reason"),
        ('- {test: x, reason: ""}\n', "row 1"),
        ("- {test: x, reason: y}\n- {test: z, reason: y, until: never}\n", "row 2"),
        ("- {test: x, reason: y}\n- {test: x, reason: z}\n", "two rows for x"),
    ],
)
def test_an_incomplete_list_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ListError, match=message):
        plan.read(written(tmp_path, text))


def test_our_own_list_can_be_read() -> None:
    assert all(row.reason for row in plan.read())
