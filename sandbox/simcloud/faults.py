"""Faults on demand: calls that are throttled, fail, fail with a resource in existence, or lose their response."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase


class Effect(Enum):
    """The effect of a fault on a call."""

    THROTTLE = "throttle"
    FAIL = "fail"
    LOSE = "lose the answer of"
    PARTLY = "fail after the creation of"


@dataclass
class Fault:
    """A fault that waits for matching calls.

    verb: ``create``, ``read``, ``update``, ``delete`` or ``invoke``. token: a type or function, with ``*`` for any text.
    first, last: which of the matching calls it affects, counted from 1. calls: matching calls so far.
    """

    effect: Effect
    verb: str
    token: str
    first: int
    last: int
    message: str = ""
    meanwhile: Callable[[], None] = lambda: None
    calls: int = 0

    def __str__(self) -> str:
        return f"{self.effect.value} {self.verb} {self.token}, calls {self.first} to {self.last}"


class Faults:
    """Faults of every cloud. A preview only meets faults of ``read`` and ``invoke``, because it makes no other API calls."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._lock = threading.Lock()

    def throttle(self, verb: str, token: str, times: int = 1) -> None:
        """Throttle the first `times` calls."""
        self._faults.append(Fault(Effect.THROTTLE, verb, token, 1, times))

    def fail(self, verb: str, token: str, nth: int = 1, message: str = "internal error; try again") -> None:
        """Let the nth call fail and change nothing."""
        self._faults.append(Fault(Effect.FAIL, verb, token, nth, nth, message))

    def fail_after_creation(self, token: str, message: str, nth: int = 1) -> None:
        """Let the nth creation make the resource, and then fail: it exists and does not work."""
        self._faults.append(Fault(Effect.PARTLY, "create", token, nth, nth, message))

    def lose_answer(self, verb: str, token: str, nth: int = 1, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Let the nth call take effect, and lose its response. meanwhile: run in between."""
        self._faults.append(Fault(Effect.LOSE, verb, token, nth, nth, meanwhile=meanwhile))

    def hit(self, verb: str, token: str) -> Fault | None:
        """Count the call, and return the fault that it meets."""
        with self._lock:
            matching = [f for f in self._faults if f.verb == verb and fnmatchcase(token, f.token)]
            for fault in matching:
                fault.calls += 1
            return next((fault for fault in matching if fault.first <= fault.calls <= fault.last), None)

    @property
    def unmet(self) -> list[str]:
        """The faults that no call has met so far."""
        return [str(fault) for fault in self._faults if fault.calls < fault.first]
