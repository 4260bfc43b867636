"""Waiting in tests: up to a time-out, which is ten times as long without time limits (MENAGERIE_NO_CLOCK)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

_TIMES = 10


def patience(seconds: float) -> float:
    """Return a time-out in seconds: ten times as long with MENAGERIE_NO_CLOCK, when tests get only spare CPU time."""
    return seconds * _TIMES if "MENAGERIE_NO_CLOCK" in os.environ else seconds


def until(
    true: Callable[[], object],
    why: str | Callable[[], str] = "the condition never became true",
    seconds: float = 60,
    every_s: float = 0.1,
) -> None:
    """Wait until `true()` is true. AssertionError with `why` after `patience(seconds)`. A callable `why` is called then."""
    deadline = time.monotonic() + patience(seconds)
    while not true():
        if time.monotonic() > deadline:
            raise AssertionError(why() if callable(why) else why)
        time.sleep(every_s)
