"""What a journal says: for each thing, its facts in order, and when nothing was missed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from controllers.metering.facts import CountersFact, Entry, Fact, Subject
from controllers.metering.journal import Segment
from controllers.metering.traffic import Traffic

GRACE_S = 120
"""How long a kubelet may have been silent when its node becomes NotReady: --node-monitor-grace-period is 50 s by default, and
the controller manager looks every 5 s."""


class Gap(NamedTuple):
    """An interval in which changes may have been missed, and why."""

    start: int
    end: int
    why: str


Steps = list[tuple[int, Fact | None]]
"""(since, fact) in order: each holds until the next. The last one still holds."""

_NOT_WATCHED = "nobody watched the cluster"
_LOST = "a part of the journal is missing"


@dataclass
class History:
    """Facts by subject and id. gaps: between the first and the last segment. end: of the last segment, 0 without one.
    is_new: nothing was added yet. lost: a segment is missing, and not everything has been said again since. traffic: what nodes have
    counted; of their readings, `steps` has only the last ones.
    """

    steps: dict[Subject, dict[str, Steps]] = field(default_factory=lambda: {each: {} for each in Subject})
    gaps: list[Gap] = field(default_factory=list)
    start: int = 0
    end: int = 0
    is_new: bool = True
    lost: bool = False
    traffic: Traffic = field(default_factory=Traffic)

    def add(self, segment: Segment) -> None:
        """Add the next segment. One of a writer that was replaced may overlap with others: what it says holds, too."""
        if not self.end:
            self.start = self.end = segment.start
            self.lost = not segment.whole
        elif segment.before > self.end:
            # What the missing one said is unknown until everything is said again.
            self.lost = True
        until = segment.end if self.lost else segment.start
        certain = self._gap(until) if until > self.end else segment.end
        if segment.whole and segment.end >= self.end:
            self._end_those_not_in(segment, certain)
            self.lost = False
        floor = 0 if self.is_new else self.end - GRACE_S
        for entry in segment.entries:
            self._step(entry, floor)
        self.is_new = False
        self.end = max(self.end, segment.end)

    def _gap(self, until: int) -> int:
        """Add a gap from the end to a moment, or continue the last one. Return where it begins."""
        why = _LOST if self.lost else _NOT_WATCHED
        last = self.gaps[-1] if self.gaps else None
        if last and last.end == self.end and last.why == why:
            self.gaps[-1] = Gap(last.start, until, why)
        else:
            self.gaps.append(Gap(self.end, until, why))
        return self.gaps[-1].start

    def _end_those_not_in(self, segment: Segment, certain: int) -> None:
        """End what a whole segment lacks. certain: the last moment at which it was there for certain."""
        present = {(entry.subject, entry.id) for entry in segment.entries}
        for subject, by_id in self.steps.items():
            for id, steps in by_id.items():
                if steps[-1][1] is not None and (subject, id) not in present:
                    self._step(Entry(max(certain, steps[-1][0]), subject, id, None))

    def _step(self, entry: Entry, floor: int = 0) -> None:
        """Take an entry over. A later entry about an earlier time replaces what was known from then on.

        floor: of things that change their state. A pod's end may be learnt at any time; a state before it was known already.
        """
        steps = self.steps[entry.subject].setdefault(entry.id, [])
        if entry.subject is Subject.POWER:
            # Readings are no states: one that says the same as the last one holds for longer.
            if entry.fact is None and steps:
                steps.append((max(entry.since, steps[-1][0] + 1), None))
            elif not steps or entry.since > steps[-1][0]:
                steps.append((entry.since, entry.fact))
            return
        if entry.subject is Subject.COUNTERS:
            # What was counted between readings is added up now: a day of them would be large.
            if not steps or entry.since > steps[-1][0] or entry.fact is None:
                assert entry.fact is None or isinstance(entry.fact, CountersFact)
                self.traffic.add(entry.id, entry.since, entry.fact)
                steps[:] = [(entry.since, entry.fact)]
            return
        if steps and steps[-1][1] == entry.fact:
            return
        since = entry.since if entry.subject is Subject.POD else max(entry.since, floor)
        while steps and steps[-1][0] >= since:
            steps.pop()
        if not steps or steps[-1][1] != entry.fact:
            steps.append((since, entry.fact))

    def at_end(self) -> Mapping[tuple[Subject, str], tuple[int, Fact]]:
        """Return what holds at the end: (subject, id) -> (since, fact)."""
        return {
            (subject, id): (steps[-1][0], steps[-1][1])
            for subject, by_id in self.steps.items()
            for id, steps in by_id.items()
            if steps and steps[-1][1] is not None
        }

    def gaps_in(self, start: int, end: int) -> tuple[Gap, ...]:
        """Return the gaps of an interval, also before the first and after the last segment."""
        outside = (
            Gap(start, min(end, self.start) if self.end else end, "the ledger had not begun"),
            Gap(max(start, self.end), end, "the journal ends there"),
        )
        known = (outside[0], *self.gaps, *((outside[1],) if self.end else ()))
        clipped = (Gap(max(gap.start, start), min(gap.end, end), gap.why) for gap in known)
        return tuple(gap for gap in clipped if gap.start < gap.end)


def read(segments: Iterable[Segment]) -> History:
    """Return what segments say, in their order."""
    history = History()
    for segment in segments:
        history.add(segment)
    return history


def lives(steps: Steps, start: int, end: int) -> Iterator[tuple[int, int, Fact]]:
    """Yield (start, end, fact) of what existed in an interval, clipped to it."""
    for at, (since, fact) in enumerate(steps):
        until = steps[at + 1][0] if at + 1 < len(steps) else end
        first, last = max(since, start), min(until, end)
        if fact is not None and first < last:
            yield first, last, fact
