"""Waiting with a deadline, on a clock that only the pauses move."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from cluster.waiting import poll, retry


class Time:
    """A clock, and its pauses."""

    def __init__(self) -> None:
        self.now, self.pauses = 100.0, list[float]()

    def clock(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def time() -> Time:
    return Time()


def replies(*values: object) -> Callable[[], object]:
    """Return a function that returns these values one after another, and raises those that are errors."""
    left: Iterator[object] = iter(values)

    def reply() -> object:
        value = next(left)
        if isinstance(value, Exception):
            raise value
        return value

    return reply


def test_the_first_true_result_is_returned(time: Time) -> None:
    assert poll(replies("", None, "ready", "later"), 60, 2, time.pause, time.clock) == "ready"
    assert time.pauses == [2, 2]


def test_a_condition_that_holds_is_not_waited_for(time: Time) -> None:
    assert poll(replies(1), 0, 2, time.pause, time.clock) == 1
    assert time.pauses == []


def test_the_last_look_is_at_the_deadline_and_its_result_is_returned(time: Time) -> None:
    assert poll(replies(0, 0, 0, ""), 5, 2, time.pause, time.clock) == ""
    assert time.pauses == [2, 2, 1]


def test_a_condition_that_comes_true_at_the_deadline_counts(time: Time) -> None:
    assert poll(replies(0, 0, 0, "ready"), 5, 2, time.pause, time.clock) == "ready"


def test_an_error_of_the_pause_ends_the_wait() -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        poll(replies(0, 1), 60, 2, interrupt)


def test_a_call_is_retried_until_it_succeeds(time: Time) -> None:
    busy = OSError("busy")
    assert retry(replies(busy, busy, ""), OSError, 60, 2, time.pause, time.clock) == ""
    assert time.pauses == [2, 2]


def test_the_last_error_is_raised_after_the_time_out(time: Time) -> None:
    errors = [OSError("first"), OSError("second"), OSError("third"), OSError("last")]
    with pytest.raises(OSError, match="last"):
        retry(replies(*errors), OSError, 5, 2, time.pause, time.clock)
    assert time.pauses == [2, 2, 1]


def test_a_slow_first_call_does_not_use_up_the_time_for_retries(time: Time) -> None:
    reply = replies(OSError("restarted"), "done")

    def slow() -> object:
        time.now += 40
        return reply()

    assert retry(slow, OSError, 30, 1, time.pause, time.clock) == "done"


def test_other_errors_are_raised_at_once(time: Time) -> None:
    with pytest.raises(ValueError, match="wrong"):
        retry(replies(ValueError("wrong"), ""), OSError, 60, 2, time.pause, time.clock)
    assert time.pauses == []
