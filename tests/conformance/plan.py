"""Which tests run, how, and which are left out for a reason that somebody has reviewed. Pure but for reading the list."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

LIST = Path(__file__).with_name("left_out.yaml")
_ALONE = ("[Serial]", "[Disruptive]")


class ListError(Exception):
    """The list of what is left out can't be used; the text says which row, and what is wrong with it."""


@dataclass(frozen=True)
class Row:
    """A row of the list. test: a whole name, in which * stands for any text."""

    test: str
    reason: str

    def names(self, test: str) -> bool:
        parts = (re.escape(part) for part in self.test.split("*"))
        return re.fullmatch(".*".join(parts), test) is not None


@dataclass(frozen=True)
class Plan:
    """Names of tests. together: may run beside each other; alone: one at a time, after them. left_out: with the reason."""

    together: tuple[str, ...]
    alone: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.together, *self.alone)


def read(path: Path = LIST) -> tuple[Row, ...]:
    """The rows of a list. ListError where one is not whole, or a test has two."""
    document = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    if not isinstance(document, list):
        raise ListError(f"{path.name} is no list")
    rows = tuple(_row(number, each, path) for number, each in enumerate(document, 1))
    twice = sorted({row.test for row in rows if sum(row.test == other.test for other in rows) > 1})
    if twice:
        raise ListError(f"{path.name} has two rows for {twice[0]}")
    return rows


def _row(number: int, given: Any, path: Path) -> Row:
    if isinstance(given, dict) and given.keys() == {"test", "reason"}:
        texts = [str(given[key] or "").strip() for key in ("test", "reason")]
        if all(texts):
            return Row(*texts)
    raise ListError(f"{path.name}, row {number}: a row has a test and a reason, and nothing else")


def plan(known: Sequence[str], rows: Iterable[Row], wanted: Iterable[str] | None = None) -> Plan:
    """known: all tests of the suite. wanted: those asked for, None for all. ListError where a row names none that is known."""
    reasons: dict[str, str] = {}
    for row in rows:
        named = [test for test in known if row.names(test)]
        if not named:
            raise ListError(f"{LIST.name} leaves out a test that the suite doesn't have: {row.test}")
        reasons |= dict.fromkeys(named, row.reason)
    asked = sorted(set(known if wanted is None else wanted))
    run = [test for test in asked if test not in reasons]
    alone = tuple(test for test in run if any(mark in test for mark in _ALONE))
    together = tuple(test for test in run if test not in alone)
    return Plan(together, alone, tuple((test, reasons[test]) for test in asked if test in reasons))
