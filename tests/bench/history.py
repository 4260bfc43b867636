"""The requests and answers of a store's clients, and whether they are consistent.

Every key has one writer, which writes 1, 2, 3 ... and each value only on top of the previous one. For such keys, checking
that a history is linearizable (Herlihy and Wing, 1990) means comparing numbers, which `violations` does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise


class Kind(StrEnum):
    WRITE = "write"
    READ = "read"


@dataclass(frozen=True)
class Operation:
    """One request, from when it was sent until it was answered or failed.

    began, ended: seconds of one clock for all clients. value: what was written or read; 0 if the key had none yet.
    known: whether there was an answer. A write without one may or may not have happened; a read without one says nothing.
    refused: why there was no answer, "" if there was one.
    """

    kind: Kind
    key: str
    value: int
    began: float
    ended: float
    refused: str = ""

    @property
    def known(self) -> bool:
        return not self.refused


def violations(history: Iterable[Operation]) -> list[str]:
    """List what must not happen, one line each: lost acknowledged writes, stale reads, and reads of values never written.

    The last reads of a history should come after all writers have stopped: they show what was lost in the end.
    """
    by_key: dict[str, list[Operation]] = {}
    for operation in history:
        by_key.setdefault(operation.key, []).append(operation)
    return [line for key in sorted(by_key) for line in _of_key(by_key[key])]


def _of_key(operations: list[Operation]) -> list[str]:
    problems, writes = [], [operation for operation in operations if operation.kind is Kind.WRITE]
    answered = sorted((operation for operation in operations if operation.known), key=lambda operation: operation.ended)
    for read in (operation for operation in answered if operation.kind is Kind.READ):
        before = [operation for operation in answered if operation.ended <= read.began]
        if before and read.value < (latest := max(before, key=lambda operation: operation.value)).value:
            how = "had been acknowledged" if latest.kind is Kind.WRITE else "had been read"
            problems.append(f"{read.key}: {read.value} was read after {latest.value} {how}")
        started = [operation.value for operation in writes if operation.began <= read.ended]
        if read.value and read.value not in started:
            problems.append(f"{read.key}: {read.value} was read, and was never written")
    return problems


@dataclass(frozen=True)
class Summary:
    """Results of a load. longest_gap_s: the longest time without an acknowledged write."""

    writes: int
    writes_refused: int
    reads: int
    reads_refused: int
    longest_gap_s: float

    def __str__(self) -> str:
        return (
            f"{self.writes} writes and {self.reads} reads answered, {self.writes_refused} and {self.reads_refused} not; "
            f"at most {self.longest_gap_s:.1f} s without a write"
        )


def summary(history: Iterable[Operation]) -> Summary:
    """Summarise a history of at least one operation."""
    operations = sorted(history, key=lambda operation: operation.ended)
    writes = [operation for operation in operations if operation.kind is Kind.WRITE]
    reads = [operation for operation in operations if operation.kind is Kind.READ]
    moments = [operations[0].began, *(operation.ended for operation in writes if operation.known), operations[-1].ended]
    return Summary(
        writes=sum(operation.known for operation in writes),
        writes_refused=sum(not operation.known for operation in writes),
        reads=sum(operation.known for operation in reads),
        reads_refused=sum(not operation.known for operation in reads),
        longest_gap_s=max(later - earlier for earlier, later in pairwise(moments)),
    )
