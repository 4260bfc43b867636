"""Waiting, with a clock that only advances on sleep."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import waiting
from tests.waiting import patience, until


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.delenv("MENAGERIE_NO_CLOCK", raising=False)
    clock = Clock()
    monkeypatch.setattr(waiting, "time", clock)
    return clock


def never() -> bool:
    return False


def test_until_returns_at_once_if_the_condition_already_holds(clock: Clock) -> None:
    until(lambda: ["any", "thing"])
    assert clock.slept == []


def test_until_polls_until_the_condition_holds(clock: Clock) -> None:
    until(lambda: clock.now >= 1001, every_s=0.25)
    assert clock.slept == [0.25] * 4


def test_a_condition_that_becomes_true_during_the_last_sleep_counts(clock: Clock) -> None:
    until(lambda: clock.now > 1000, seconds=1, every_s=50)
    assert clock.slept == [50]


@pytest.mark.parametrize("why", ["the log", lambda: "the log"])
def test_a_condition_that_never_holds_fails_with_the_reason_after_the_time_out(
    clock: Clock, why: str | Callable[[], str]
) -> None:
    with pytest.raises(AssertionError, match="^the log$"):
        until(never, why, 5, 0.5)
    assert 5 <= sum(clock.slept) <= 6


def test_a_callable_reason_is_called_after_the_time_out(clock: Clock) -> None:
    with pytest.raises(AssertionError, match="^at 10[6-7]"):
        until(never, lambda: f"at {clock.now:.0f}", every_s=1)


def test_the_reason_is_optional(clock: Clock) -> None:
    with pytest.raises(AssertionError, match="^the condition never became true$"):
        until(never)
    assert 60 <= sum(clock.slept) <= 61


def test_a_condition_that_raises_ends_the_wait(clock: Clock) -> None:
    def ended() -> bool:
        raise AssertionError("the program has ended")

    with pytest.raises(AssertionError, match="the program has ended"):
        until(ended)
    assert clock.slept == []


def test_patience_is_ten_times_as_long_without_time_limits(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    assert patience(5) == 5
    monkeypatch.setenv("MENAGERIE_NO_CLOCK", "1")
    assert patience(5) == 50
    with pytest.raises(AssertionError, match="the condition never became true"):
        until(never, seconds=5, every_s=0.5)
    assert 50 <= sum(clock.slept) <= 51
