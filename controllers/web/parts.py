"""Reads one part of a cluster again and again, in a thread of its own, so that a page never waits for a cluster.

A part that hangs keeps its last value, and delays no other part. Nothing ends the thread of a call that hangs: it is a daemon.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

T = TypeVar("T")
log = logging.getLogger(__name__)

PATIENCE_S = 30.0
"""After this time without an answer, pages say that the part does not answer."""
SHARE = 4.0
"""Reading takes at most a fifth of the time: the pause is at least four times as long as the reading was."""


@dataclass(frozen=True)
class Part(Generic[T]):
    """A part as it was read last. Times are Unix times.

    value: None until it was read once. at_s: when that reading ended. problem: why the last reading failed, "" if it did not.
    began_s: when the reading that is under way began, None between two.
    """

    value: T | None = None
    at_s: float | None = None
    problem: str = ""
    began_s: float | None = None

    def trouble(self, now_s: float) -> str:
        """Return why the value is missing or old, "" if it is current, or the first reading is still young."""
        if self.began_s is not None and now_s - self.began_s > PATIENCE_S:
            return f"no answer for {now_s - self.began_s:.0f} s"
        return self.problem


class Reader(Generic[T]):
    """Reads a part until `stop`.

    read: may raise anything. explain: an error in words. pause_s: least pause between readings. after: called after each new value.
    """

    def __init__(
        self,
        name: str,
        read: Callable[[], T],
        explain: Callable[[Exception], str],
        pause_s: float = 15.0,
        after: Callable[[], object] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name, self._read, self._explain, self._pause_s = name, read, explain, pause_s
        self._after, self._clock = after, clock
        self._part: Part[T] = Part()
        self._over = threading.Event()

    @property
    def part(self) -> Part[T]:
        """Return what was read last. Another thread replaces it whole."""
        return self._part

    def start(self) -> None:
        """Start to read."""
        threading.Thread(target=self._run, name=f"reader of {self.name}", daemon=True).start()

    def stop(self) -> None:
        """Begin no further reading."""
        self._over.set()

    def so_far(self, value: T) -> None:
        """Show what has been read so far: the first reading of a large part takes minutes, and is no silence."""
        now_s = self._clock()
        self._part = Part(value, now_s, began_s=now_s)

    def once(self) -> float:
        """Read once. Return how long it took, in seconds."""
        began = time.monotonic()
        self._part = replace(self._part, began_s=self._clock())
        try:
            self._part = Part(self._read(), self._clock())
            self._after()
        except Exception as error:  # a part that can't be read must not hide the others
            self._part = replace(self._part, problem=self._explain(error), began_s=None)
            log.debug("%s can't be read", self.name, exc_info=True)
        return time.monotonic() - began

    def _run(self) -> None:
        while not self._over.is_set():
            took_s = self.once()
            self._over.wait(max(self._pause_s, SHARE * took_s))
