"""Questions about an account or this machine, and the rows that answer them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeVar, cast

from cluster.errors import MenagerieError


class State(StrEnum):
    """What is known about a question."""

    OK = "ok"
    WRONG = "wrong"
    UNKNOWN = "unknown"
    """It was asked, and there is no usable answer."""
    NOT_ASKED = "not asked"
    """Something that it needs is missing, such as credentials."""


@dataclass(frozen=True)
class Answer:
    """One answer. about: what of the question it answers, "" for all of it. needed: by the plan. mend: commands, ready to paste."""

    state: State
    finding: str
    needed: str = ""
    mend: tuple[str, ...] = ()
    about: str = ""


def ok(finding: str, needed: str = "", *, about: str = "") -> Answer:
    return Answer(State.OK, finding, needed, about=about)


def wrong(finding: str, *mend: str, needed: str = "", about: str = "") -> Answer:
    return Answer(State.WRONG, finding, needed, mend, about)


def unknown(finding: str, *mend: str, needed: str = "", about: str = "") -> Answer:
    return Answer(State.UNKNOWN, finding, needed, mend, about)


@dataclass(frozen=True)
class Question:
    """One question. ask: returns its answers; may raise.

    calls: operations that it may send, as the cloud names them. rights: those that the operations need. cloud: whether it
    needs a login.
    """

    group: str
    name: str
    ask: Callable[[], Iterable[Answer]] = field(repr=False)
    calls: tuple[str, ...] = ()
    rights: tuple[str, ...] = ()
    cloud: bool = True


@dataclass(frozen=True)
class AnswerRow:
    """An answer under its question's name."""

    group: str
    name: str
    answer: Answer

    def to_json(self) -> dict[str, Any]:
        answer = self.answer
        return {
            "group": self.group,
            "name": self.name,
            "state": answer.state.value,
            "found": answer.finding,
            "needed": answer.needed,
            "mend": list(answer.mend),
        }


@dataclass(frozen=True)
class Report:
    cluster: str
    cloud: str
    rows: tuple[AnswerRow, ...]

    def count(self, state: State) -> int:
        return sum(row.answer.state is state for row in self.rows)

    @property
    def ok(self) -> bool:
        """Whether every question was answered, and every answer is ok: what was not seen does not pass."""
        return all(row.answer.state is State.OK for row in self.rows)

    @property
    def is_wrong(self) -> bool:
        return self.count(State.WRONG) > 0

    def to_json(self) -> dict[str, Any]:
        return {
            "cluster": self.cluster,
            "cloud": self.cloud,
            "ok": self.ok,
            "counts": {state.value: self.count(state) for state in State},
            "questions": [row.to_json() for row in self.rows],
        }


T = TypeVar("T")


class Once(Generic[T]):
    """A value that several questions need, from a request that is sent once. An error is kept, and raised for each."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._result: T | None = None
        self._error: MenagerieError | None = None
        self._done = False

    def __call__(self) -> T:
        with self._lock:
            if not self._done:
                try:
                    self._result = self._make()
                except MenagerieError as error:
                    self._error = error
                self._done = True
        if self._error is not None:
            raise self._error
        return cast(T, self._result)
