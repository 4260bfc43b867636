"""What clients asked of a store and were told, and whether it could have been so.

Every key has one writer, which writes 1, 2, 3 ... and each value only upon the one before it. For such keys "the history
is linearizable" (Herlihy and Wing, 1990) comes down to comparing numbers, which is what `violations` does.
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
    """One request, from when it was sent to when its answer, or none, was had.

    began, ended: seconds of one clock for all clients. value: what was written or read; 0 where a key had none yet.
    known: whether there was an answer. A write without one may have happened or not; a read without one says nothing.
    refused: why there was none, "" where there was.
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
    """What can't be, one line each: acknowledged writes that were lost, reads of the past, reads of what nobody wrote.

    The last reads of a history should be made when all writers have stopped: they show what was lost in the end.
    """
    by_key: dict[str, list[Operation]] = {}
    for operation in history:
        by_key.setdefault(operation.key, []).append(operation)
    return [line for key in sorted(by_key) for line in _of_key(by_key[key])]


def _of_key(operations: list[Operation]) -> list[str]:
    found, writes = [], [each for each in operations if each.kind is Kind.WRITE]
    seen = sorted((each for each in operations if each.known), key=lambda each: each.ended)
    for read in (each for each in seen if each.kind is Kind.READ):
        before = [each for each in seen if each.ended <= read.began]
        if before and read.value < (latest := max(before, key=lambda each: each.value)).value:
            what = "had been acknowledged" if latest.kind is Kind.WRITE else "had been read"
            found.append(f"{read.key}: {read.value} was read after {latest.value} {what}")
        begun = [each.value for each in writes if each.began <= read.ended]
        if read.value and read.value not in begun:
            found.append(f"{read.key}: {read.value} was read, and nobody had written it")
    return found


@dataclass(frozen=True)
class Summary:
    """How a load fared. longest_gap_s: the longest time in which no write was acknowledged."""

    writes: int
    writes_refused: int
    reads: int
    reads_refused: int
    longest_gap_s: float

    def __str__(self) -> str:
        return (
            f"{self.writes} writes and {self.reads} reads answered, {self.writes_refused} and {self.reads_refused} not; "
            f"{self.longest_gap_s:.1f} s at most without a write"
        )


def summary(history: Iterable[Operation]) -> Summary:
    """Of at least one operation."""
    every = sorted(history, key=lambda each: each.ended)
    writes = [each for each in every if each.kind is Kind.WRITE]
    reads = [each for each in every if each.kind is Kind.READ]
    moments = [every[0].began, *(each.ended for each in writes if each.known), every[-1].ended]
    return Summary(
        writes=sum(each.known for each in writes),
        writes_refused=sum(not each.known for each in writes),
        reads=sum(each.known for each in reads),
        reads_refused=sum(not each.known for each in reads),
        longest_gap_s=max(later - former for former, later in pairwise(moments)),
    )
