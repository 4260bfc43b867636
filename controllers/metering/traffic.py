"""Bytes by namespace, direction and class, from counters of nodes that only grow, and begin again sometimes. Pure.

A node says what its counters have reached. What was counted between two readings is their difference, however far apart they are; it
is spread evenly over the time between. Only this sum is kept, by the hour, not the readings of a day.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from controllers.metering.facts import WAYS, CountersFact

HOUR_S = 3600
_NONE = (0,) * len(WAYS)


class Interval(NamedTuple):
    """A time of a node."""

    node: str
    start: int
    end: int


class _Reading(NamedTuple):
    """What the counters of a node had reached at a moment. counts: by namespace."""

    since: int
    fact: CountersFact
    counts: Mapping[str, Sequence[int]]


@dataclass
class Traffic:
    """What nodes have counted. amounts: (hour, namespace) -> bytes in the order of `WAYS`.

    covered: node -> (start, end) of the times between readings, in order. again: times in which counters began again, so that what they
    had counted before is lost. resets: (node, time, number) of losses that the node itself noticed.
    """

    amounts: dict[tuple[int, str], list[int]] = field(default_factory=dict)
    covered: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    again: list[Interval] = field(default_factory=list)
    resets: list[tuple[str, int, int]] = field(default_factory=list)
    _last: dict[str, _Reading] = field(default_factory=dict)

    def add(self, node: str, since: int, fact: CountersFact | None) -> None:
        """Take over a reading, None for a node that is gone. One that is not later than the last one says nothing new."""
        former = self._last.get(node)
        if fact is None:
            self._last.pop(node, None)
            return
        if former and since <= former.since:
            return
        reading = _Reading(since, fact, dict(fact.counts))
        if former:
            self._between(Interval(node, former.since, since), former, reading)
        else:
            self.covered.setdefault(node, []).append((since, since))
        self._last[node] = reading

    def _between(self, during: Interval, one: _Reading, other: _Reading) -> None:
        began_again = one.fact.life != other.fact.life
        before: Mapping[str, Sequence[int]] = {} if began_again else one.counts
        hours = list(_hours(during))
        for namespace, reached in other.counts.items():
            former = before.get(namespace, _NONE)
            if reached == former:
                continue
            differences = [now - then for now, then in zip(reached, former, strict=True)]
            if min(differences) < 0:
                began_again = True
                differences = [now if more < 0 else more for now, more in zip(reached, differences, strict=True)]
            self._spread(namespace, differences, hours)
        self._cover(during, began_again=began_again)
        if other.fact.resets > one.fact.resets:
            self.resets.append((during.node, during.end, other.fact.resets - one.fact.resets))

    def _spread(self, namespace: str, differences: list[int], hours: list[tuple[int, int, int]]) -> None:
        """Add differences to the hours of their time, in proportion. The parts add up to them."""
        whole_s = hours[-1][2]
        for hour, first_s, last_s in hours:
            total = self.amounts.setdefault((hour, namespace), list(_NONE))
            for at, amount in enumerate(differences):
                if amount:
                    total[at] += amount * last_s // whole_s - amount * first_s // whole_s

    def _cover(self, during: Interval, *, began_again: bool) -> None:
        times = self.covered.setdefault(during.node, [])
        if began_again:
            self.again.append(during)
            times.append((during.end, during.end))
        elif times and times[-1][1] == during.start:
            times[-1] = (times[-1][0], during.end)
        else:
            times.append((during.start, during.end))

    def covered_s(self, node: str, start: int, end: int) -> int:
        """Return the seconds of an interval for which a node's bytes are known."""
        return sum(max(0, min(last, end) - max(first, start)) for first, last in self.covered.get(node, ()))


def _hours(during: Interval) -> Iterator[tuple[int, int, int]]:
    """Yield (hour, first, last) of each hour that a time has a part of; first, last: seconds from its beginning."""
    _, start, end = during
    for first, last in pairwise([start, *range(start - start % HOUR_S + HOUR_S, end, HOUR_S), end]):
        yield first - first % HOUR_S, first - start, last - start
