"""Decide which tests run and how, and which are left out for a reviewed reason. Pure except for reading the list."""

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
    """The list of left-out tests cannot be used; the message names the row and the problem."""


@dataclass(frozen=True)
class Row:
    """A row of the list. test: a full name, in which * stands for any text."""

    test: str
    reason: str

    def names(self, test: str) -> bool:
        parts = (re.escape(part) for part in self.test.split("*"))
        return re.fullmatch(".*".join(parts), test) is not None


@dataclass(frozen=True)
class Plan:
    """Names of tests. together: may run in parallel; alone: one at a time, after them. left_out: (test, reason)."""

    together: tuple[str, ...]
    alone: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.together, *self.alone)


def read(path: Path = LIST) -> tuple[Row, ...]:
    """Return the rows of a list. Raises ListError if a row is incomplete, or a test has two rows."""
    document = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    if not isinstance(document, list):
        raise ListError(f"{path.name} is not a list")
    rows = tuple(_row(number, entry, path) for number, entry in enumerate(document, 1))
    twice = sorted({row.test for row in rows if sum(row.test == other.test for other in rows) > 1})
    if twice:
        raise ListError(f"{path.name} has two rows for {twice[0]}")
    return rows


def _row(number: int, given: Any, path: Path) -> Row:
    if isinstance(given, dict) and given.keys() == {"test", "reason"}:
        texts = [str(given[key] or "").strip() for key in ("test", "reason")]
        if all(texts):
            return Row(*texts)
    raise ListError(f"{path.name}, row {number}: give a test and a reason, and nothing else")


def plan(known: Sequence[str], rows: Iterable[Row], selected: Iterable[str] | None = None) -> Plan:
    """Return the plan.

    known: all tests of the suite. selected: those to run, None for all. Raises ListError if a row matches no known test.
    """
    reasons: dict[str, str] = {}
    for row in rows:
        matching = [test for test in known if row.names(test)]
        if not matching:
            raise ListError(f"{LIST.name} has a test that the suite doesn't have: {row.test}; remove the row")
        reasons |= dict.fromkeys(matching, row.reason)
    chosen = sorted(set(known if selected is None else selected))
    planned = [test for test in chosen if test not in reasons]
    alone = tuple(test for test in planned if any(mark in test for mark in _ALONE))
    together = tuple(test for test in planned if test not in alone)
    return Plan(together, alone, tuple((test, reasons[test]) for test in chosen if test in reasons))
