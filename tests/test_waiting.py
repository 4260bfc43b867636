"""Waiting with a clock that only sleeping moves."""

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
    made = Clock()
    monkeypatch.setattr(waiting, "time", made)
    return made


def never() -> bool:
    return False


def test_what_is_true_already_is_not_waited_for(clock: Clock) -> None:
    until(lambda: ["any", "thing"])
    assert clock.slept == []


def test_what_becomes_true_is_looked_at_again_and_again(clock: Clock) -> None:
    until(lambda: clock.now >= 1001, every_s=0.25)
    assert clock.slept == [0.25] * 4


def test_what_became_true_during_the_last_sleep_counts_however_long_that_was(clock: Clock) -> None:
    until(lambda: clock.now > 1000, seconds=1, every_s=50)
    assert clock.slept == [50]


@pytest.mark.parametrize("why", ["the log", lambda: "the log"])
def test_what_never_comes_fails_with_the_reason_after_the_patience(clock: Clock, why: str | Callable[[], str]) -> None:
    with pytest.raises(AssertionError, match="^the log$"):
        until(never, why, 5, 0.5)
    assert 5 <= sum(clock.slept) <= 6


def test_a_reason_that_is_a_function_is_asked_once_it_is_too_late(clock: Clock) -> None:
    with pytest.raises(AssertionError, match="^at 10[6-7]"):
        until(never, lambda: f"at {clock.now:.0f}", every_s=1)


def test_nobody_needs_to_give_a_reason(clock: Clock) -> None:
    with pytest.raises(AssertionError, match="^it never came$"):
        until(never)
    assert 60 <= sum(clock.slept) <= 61


def test_a_trial_that_raises_ends_the_wait(clock: Clock) -> None:
    def ended() -> bool:
        raise AssertionError("the program has ended")

    with pytest.raises(AssertionError, match="the program has ended"):
        until(ended)
    assert clock.slept == []


def test_patience_is_ten_times_as_long_where_nothing_has_a_clock(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    assert patience(5) == 5
    monkeypatch.setenv("MENAGERIE_NO_CLOCK", "1")
    assert patience(5) == 50
    with pytest.raises(AssertionError, match="it never came"):
        until(never, seconds=5, every_s=0.5)
    assert 50 <= sum(clock.slept) <= 51
