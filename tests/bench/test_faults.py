"""Checks of faults in the table: what `status` reports, and how long writes may stop."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from operations.status import Status, StatusItem
from tests.bench.faults import FAULTS, MOMENT_S, Fault, unreported, write_gaps
from tests.bench.history import Summary

DOWN = StatusItem("etcds", "etcd-main-1", False, "member of main, no answer")
SLOW = StatusItem("API servers", "api-1", False, "10.77.0.11, load balancer says DOWN")
PAUSED = next(fault for fault in FAULTS if fault.name == "the leader of main is paused")
API = next(fault for fault in FAULTS if fault.name == "an API server is paused")
KILLED = next(fault for fault in FAULTS if fault.name == "a follower of main is killed")
QUORUM = next(fault for fault in FAULTS if fault.name == "main loses its quorum")


def looks(*each: tuple[StatusItem, ...]) -> Callable[[], Status]:
    """Return a function that returns these statuses one by one, and the last one repeatedly."""
    left = list(each)
    return lambda: Status("lab", "https://10.77.0.10:6443", left.pop(0) if len(left) > 1 else left[0])


def test_every_fault_says_what_status_reports_or_why_nothing() -> None:
    assert len(FAULTS) == 16
    with pytest.raises(ValueError, match="give either what status says, or why it says nothing"):
        Fault("F0", "nothing", FAULTS[0].inject)
    with pytest.raises(ValueError, match="give either what status says, or why it says nothing"):
        Fault("F0", "both", FAULTS[0].inject, status_says="DOWN", why_silent="it is over")


def test_two_faults_may_be_reported_by_different_statuses() -> None:
    assert unreported([PAUSED, API], looks((DOWN,), (SLOW,)), 60) == []


def test_an_unreported_fault_is_named_with_the_last_report() -> None:
    (problem,) = unreported([PAUSED, API], looks((DOWN,)), 0)
    assert "'load balancer says DOWN' for F15 an API server is paused; its last report: etcd-main-1" in problem


def test_a_healthy_item_reports_no_fault() -> None:
    (problem,) = unreported([PAUSED], looks((StatusItem("etcds", "etcd-main-1", True, "healthy"),)), 0)
    assert problem.endswith("its last report: all is healthy")


def test_status_is_not_read_for_faults_that_it_can_not_report() -> None:
    def asked() -> Status:
        raise AssertionError("asked")

    assert unreported([KILLED], asked, 0) == []


@pytest.mark.parametrize(
    ("faults", "gap_s", "well"),
    [
        ([PAUSED], MOMENT_S, True),
        ([PAUSED], MOMENT_S + 1, False),
        ([PAUSED, API], MOMENT_S + 10, True),
        ([PAUSED, API], MOMENT_S + 11, False),
        ([QUORUM], 1000.0, True),
    ],
)
def test_writes_resume_within_a_moment_or_for_two_faults_a_moment_after_both(
    faults: list[Fault], gap_s: float, well: bool
) -> None:
    assert (write_gaps(faults, Summary(9, 0, 9, 0, gap_s), lasted_s=10.0) == []) is well
