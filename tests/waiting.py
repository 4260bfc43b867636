"""Waiting in tests: with patience, and with ten times as much where nothing has a clock (MENAGERIE_NO_CLOCK)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

_TIMES = 10


def patience(seconds: float) -> float:
    """Seconds; ten times as many with MENAGERIE_NO_CLOCK, as tests then run with the CPU that others leave."""
    return seconds * _TIMES if "MENAGERIE_NO_CLOCK" in os.environ else seconds


def until(
    true: Callable[[], object],
    why: str | Callable[[], str] = "it never came",
    seconds: float = 60,
    every_s: float = 0.1,
) -> None:
    """Return once `true()` is; AssertionError with `why` after `seconds` of patience. A function is asked once it is too late."""
    deadline = time.monotonic() + patience(seconds)
    while not true():
        if time.monotonic() > deadline:
            raise AssertionError(why() if callable(why) else why)
        time.sleep(every_s)
