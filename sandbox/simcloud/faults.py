"""Faults on demand: which calls are throttled, fail, or lose their answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase


class Effect(Enum):
    """What a fault does to a call."""

    THROTTLE = "throttle"
    FAIL = "fail"
    LOSE = "lose the answer of"


@dataclass
class Fault:
    """A fault that waits for calls. verb: ``create``, ``read``, ``update``, ``delete`` or ``invoke``. token: a type
    or function, with ``*`` for any text. first, last: which of the matching calls it hits, from 1."""

    effect: Effect
    verb: str
    token: str
    first: int
    last: int
    message: str = ""
    meanwhile: Callable[[], None] = lambda: None
    seen: int = 0

    def __str__(self) -> str:
        return f"{self.effect.value} {self.verb} {self.token}, calls {self.first} to {self.last}"


class Faults:
    """Faults of every cloud. A preview meets only those of ``read`` and ``invoke``: it calls no API but to look."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._lock = threading.Lock()

    def throttle(self, verb: str, token: str, times: int = 1) -> None:
        """The first `times` calls are refused as too many."""
        self._faults.append(Fault(Effect.THROTTLE, verb, token, 1, times))

    def fail(self, verb: str, token: str, nth: int = 1, message: str = "internal error; try again") -> None:
        """The nth call fails and changes nothing."""
        self._faults.append(Fault(Effect.FAIL, verb, token, nth, nth, message))

    def lose_answer(self, verb: str, token: str, nth: int = 1, meanwhile: Callable[[], None] = lambda: None) -> None:
        """The nth call does its work and the engine never hears of it. meanwhile: run in between."""
        self._faults.append(Fault(Effect.LOSE, verb, token, nth, nth, meanwhile=meanwhile))

    def hit(self, verb: str, token: str) -> Fault | None:
        """The fault that a call meets; counts the call."""
        with self._lock:
            matching = [f for f in self._faults if f.verb == verb and fnmatchcase(token, f.token)]
            for fault in matching:
                fault.seen += 1
            return next((fault for fault in matching if fault.first <= fault.seen <= fault.last), None)

    @property
    def unmet(self) -> list[str]:
        """The faults that no call has met so far."""
        return [str(fault) for fault in self._faults if fault.seen < fault.first]
