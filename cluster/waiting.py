"""Waiting with a deadline: for a condition, or for a call that stops failing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
Pause = Callable[[float], object]
"""Sleeps for so many seconds, or raises to end the wait."""
Clock = Callable[[], float]
"""Returns monotonic seconds."""


def poll(
    look: Callable[[], T], timeout_s: float, every_s: float, pause: Pause = time.sleep, clock: Clock = time.monotonic
) -> T:
    """Call `look` until its result is true, for at most `timeout_s`. Return its last result, which is false after a time-out.

    `look` is called at least once, and a last time at the deadline.
    """
    deadline = clock() + timeout_s
    while not (result := look()) and (left_s := deadline - clock()) > 0:
        pause(min(every_s, left_s))
    return result


def retry(
    call: Callable[[], T],
    errors: type[Exception] | tuple[type[Exception], ...],
    timeout_s: float,
    every_s: float,
    pause: Pause = time.sleep,
    clock: Clock = time.monotonic,
) -> T:
    """Call `call` until it raises none of these errors, for at most `timeout_s` after the first one. Return its result.

    Errors: raises the last one. `call` must be idempotent.
    """
    deadline: float | None = None
    while True:
        try:
            return call()
        except errors:
            now = clock()
            deadline = now + timeout_s if deadline is None else deadline
            if now >= deadline:
                raise
        pause(min(every_s, deadline - now))


def join_all(threads: Iterable[threading.Thread], timeout_s: float) -> None:
    """Wait for the end of those threads that have started, for at most `timeout_s` in all."""
    deadline = time.monotonic() + timeout_s
    for thread in threads:
        if thread.ident:
            thread.join(max(deadline - time.monotonic(), 0.0))
