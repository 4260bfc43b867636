"""Energy of hosts: from readings of their power, or else an estimate from the watts that the spec declares. Pure.

A reading holds until the next one, for at most `HOLD_S`. A host's measured energy is split like its time. The estimate gives what pods
use the busy watts, and the rest the idle ones. Time with neither has no energy, and is counted as such. Everything is in integers, so
parts add up to the whole exactly.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from controllers.metering.facts import EnergyFact, EnergySource, PowerFact
from controllers.metering.history import Steps, lives

MICRO = 1_000_000
HOUR_S = 3600
HOLD_S = 1500
"""BMCs are read every ten minutes: one reading may fail."""
UJ_PER_KWH = 3_600_000_000_000
"""Microjoules in a kilowatt-hour."""
TOLERANCE = 1000
_ASKED = (EnergySource.BMC, EnergySource.DECLARED)
_NAMED = 3
"""So many hosts are named in a sentence about what is missing."""


class PartEnergy(NamedTuple):
    """Of a part of a host. energy, estimated: microjoules, all of it and the part that is an estimate. unmetered_us: time without."""

    energy: int
    estimated: int
    unmetered_us: int


class Meter:
    """The readings of one host in an interval."""

    def __init__(self, steps: Steps, start: int, end: int) -> None:
        held = list(_held(steps, start, end))
        self._firsts = [first for first, _, _ in held]
        self._lasts = [last for _, last, _ in held]
        self._watts = [watts for _, _, watts in held]
        self._joules = [0, *accumulate((last - first) * watts for first, last, watts in held)]
        self._read_s = [0, *accumulate(last - first for first, last, _ in held)]

    def between(self, first: int, last: int) -> tuple[int, int]:
        """Return (joules, seconds with a reading) between two moments."""
        if not self._firsts:
            return 0, 0
        (joules, read_s), (before, read_before) = self._until(last), self._until(first)
        return joules - before, read_s - read_before

    def _until(self, moment: int) -> tuple[int, int]:
        at = bisect_right(self._firsts, moment) - 1
        if at < 0:
            return 0, 0
        part = min(moment, self._lasts[at]) - self._firsts[at]
        return self._joules[at] + part * self._watts[at], self._read_s[at] + part


def _held(steps: Steps, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield (start, end, watts) of each reading for as long as it holds."""
    for at, (since, fact) in enumerate(steps):
        following = steps[at + 1][0] if at + 1 < len(steps) else end
        first, last = max(since, start), min(following, since + HOLD_S, end)
        if isinstance(fact, PowerFact) and first < last:
            yield first, last, fact.watts


def parts(
    owns: Sequence[int], used: Sequence[bool], read: tuple[int, int], span: int, declared: EnergyFact | None
) -> list[PartEnergy]:
    """Split a host's energy in a piece of time.

    owns: microseconds of each part, which are `span` seconds together. used: whether a part is used by pods. read: see
    `Meter.between`. declared: of its pool, None if nothing is known.
    """
    joules, read_s = read
    measured, unread = split(joules * MICRO, owns), split((span - read_s) * MICRO, owns)
    if declared is None or not declared.busy:
        return [PartEnergy(energy, 0, own) for energy, own in zip(measured, unread, strict=True)]
    rates = [declared.busy if is_used else declared.idle for is_used in used]
    estimated = [own * rate for own, rate in zip(unread, rates, strict=True)]
    return [PartEnergy(energy + more, more, 0) for energy, more in zip(measured, estimated, strict=True)]


def split(total: int, owns: Sequence[int]) -> list[int]:
    """Split an amount in proportion. The parts add up to it."""
    sums = list(accumulate(owns, initial=0))
    if not sums[-1]:
        return [0] * len(owns)
    return [total * last // sums[-1] - total * first // sums[-1] for first, last in pairwise(sums)]


@dataclass
class Lacking:
    """What has no energy in a ledger. asked_us: time of hosts in pools that have BMCs to read or declare watts.

    unread_us: (pool, host) -> time of them without either. silent: other pools, and why.
    """

    asked_us: int = 0
    unread_us: dict[tuple[str, str], int] = field(default_factory=dict)
    silent: dict[str, EnergySource] = field(default_factory=dict)

    def note(self, pool: str, host: str, span: int, unmetered_us: int, declared: EnergyFact | None) -> None:
        """Note a piece of a host's time. span: seconds. unmetered_us: without energy."""
        source = declared.source if declared else EnergySource.NONE
        if source not in _ASKED:
            self.silent[pool] = source
            return
        self.asked_us += span * MICRO
        if unmetered_us:
            self.unread_us[pool, host] = self.unread_us.get((pool, host), 0) + unmetered_us

    def sentences(self) -> Iterator[str]:
        """Yield what is missing, nothing if at most one part in `TOLERANCE` is."""
        if sum(self.unread_us.values()) * TOLERANCE <= self.asked_us:
            return
        for pool in sorted({pool for pool, _ in self.unread_us}):
            own = {host: amount for (of, host), amount in self.unread_us.items() if of == pool}
            names = sorted(own, key=lambda host: (-own[host], host))
            more = f" and {len(names) - _NAMED} others" if len(names) > _NAMED else ""
            hours = sum(own.values()) / MICRO / HOUR_S
            yield f"no reading of power for {hours:.1f} host hours of pool {pool}: {', '.join(names[:_NAMED])}{more}"


def document(lacking: Lacking, declared: Mapping[str, Steps], start: int, end: int) -> dict[str, Any]:
    """Return the part of a day's object about energy. declared: pool -> what its spec declared."""
    missing = list(lacking.sentences())
    return {
        "complete": not missing,
        "missing": missing,
        "unknown": {pool: source.value for pool, source in sorted(lacking.silent.items())},
        "declared": {
            pool: [[since, *fact] for since, _, fact in lives(steps, start, end) if isinstance(fact, EnergyFact)]
            for pool, steps in sorted(declared.items())
        },
    }
