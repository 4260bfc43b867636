"""What a fault of the table must come to: what `status` says of it, and how long nobody writes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from operations.status import Item, Status
from tests.bench.faults import FAULTS, MOMENT_S, Fault, too_long_silent, untold
from tests.bench.history import Summary

DOWN = Item("etcds", "etcd-main-1", False, "member of main, no answer")
SLOW = Item("API servers", "api-1", False, "10.77.0.11, load balancer says DOWN")
PAUSED = next(fault for fault in FAULTS if fault.name == "the leader of main is paused")
API = next(fault for fault in FAULTS if fault.name == "an API server is paused")
KILLED = next(fault for fault in FAULTS if fault.name == "a follower of main is killed")
QUORUM = next(fault for fault in FAULTS if fault.name == "main loses its quorum")


def looks(*each: tuple[Item, ...]) -> Callable[[], Status]:
    """What status says, look by look; the last again and again."""
    left = list(each)
    return lambda: Status("lab", "https://10.77.0.10:6443", left.pop(0) if len(left) > 1 else left[0])


def test_every_fault_says_what_status_tells_of_it_or_why_nothing() -> None:
    assert len(FAULTS) == 16
    with pytest.raises(ValueError, match="either what status says, or why it says nothing"):
        Fault("F0", "nothing", FAULTS[0].inject)
    with pytest.raises(ValueError, match="either what status says, or why it says nothing"):
        Fault("F0", "both", FAULTS[0].inject, told="DOWN", untold="it is over")


def test_what_status_says_at_one_of_its_looks_counts_for_each_of_two_faults() -> None:
    assert untold([PAUSED, API], looks((DOWN,), (SLOW,)), 60) == []


def test_a_fault_that_status_does_not_tell_of_is_named_with_what_it_said_last() -> None:
    (told,) = untold([PAUSED, API], looks((DOWN,)), 0)
    assert (
        "status did not say 'load balancer says DOWN' of F15 an API server is paused, but at last: etcd-main-1" in told
    )


def test_what_is_well_tells_of_nothing() -> None:
    (told,) = untold([PAUSED], looks((Item("etcds", "etcd-main-1", True, "healthy"),)), 0)
    assert told.endswith("but at last: all is well")


def test_status_is_not_asked_of_what_it_can_not_tell() -> None:
    def asked() -> Status:
        raise AssertionError("asked")

    assert untold([KILLED], asked, 0) == []


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
def test_writes_go_on_within_a_moment_and_of_two_faults_a_moment_after_both(
    faults: list[Fault], gap_s: float, well: bool
) -> None:
    assert (too_long_silent(faults, Summary(9, 0, 9, 0, gap_s), lasted_s=10.0) == []) is well
