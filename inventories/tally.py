"""How far a run over many hosts is, from its progress: counts, and what time is left. No I/O, no clock."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from inventories.report import Progress, Status


@dataclass(frozen=True)
class Count:
    """Hosts by what they are at; together they are all of the run."""

    total: int
    done: int
    changed: int
    """Of those done."""
    failed: int
    unreachable: int
    running: int

    @property
    def ended(self) -> int:
        return self.done + self.failed + self.unreachable

    @property
    def waiting(self) -> int:
        return self.total - self.ended - self.running


class Tally:
    """Takes each progress of a run with the time at which it came, in seconds of any clock."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._began: dict[str, float] = {}
        self._running: dict[str, str] = {}
        self._changed: set[str] = set()
        self._ended: dict[str, Status] = {}
        self._taken_s = 0.0
        self._most_running = 0
        self.failures: Counter[str] = Counter()
        """Why hosts failed -> how many, the host's own name left out."""

    def hear(self, progress: Progress, now: float) -> None:
        """Take one progress. A host that has ended stays so."""
        host = progress.host
        if host in self._ended:
            return
        self._began.setdefault(host, now)
        self._running[host] = progress.role
        self._most_running = max(self._most_running, len(self._running))
        if progress.status is Status.CHANGED:
            self._changed.add(host)
        if progress.is_last:
            self._end(progress, now)

    def _end(self, progress: Progress, now: float) -> None:
        broken = progress.status in (Status.FAILED, Status.UNREACHABLE)
        self._ended[progress.host] = progress.status if broken else Status.OK
        self._running.pop(progress.host)
        self._taken_s += now - self._began[progress.host]
        if broken:
            told = progress.message.replace(progress.host, "the host").strip().splitlines() or [""]
            self.failures[f"{progress.role or progress.task}: {told[0]}"] += 1

    @property
    def running(self) -> dict[str, str]:
        """Host -> the role that it is at, the one first that began first."""
        return dict(self._running)

    @property
    def count(self) -> Count:
        kinds = Counter(self._ended.values())
        done = kinds[Status.OK]
        changed = sum(self._ended.get(host) is Status.OK for host in self._changed)
        return Count(self._total, done, changed, kinds[Status.FAILED], kinds[Status.UNREACHABLE], len(self._running))

    def left_s(self) -> float | None:
        """Seconds until all hosts have ended, as those took that have; None before the first has.

        Hosts that run are taken to be half done.
        """
        count = self.count
        if not count.ended or not self._most_running:
            return None
        mean_s = self._taken_s / count.ended
        return mean_s * (count.waiting + count.running / 2) / self._most_running


def words(count: Count, left_s: float | None) -> str:
    """The count in one line."""
    told = [f"{count.done} of {count.total} hosts done" + (f" ({count.changed} changed)" if count.changed else "")]
    for number, name in ((count.failed, "failed"), (count.unreachable, "unreachable"), (count.running, "running")):
        if number:
            told.append(f"{number} {name}")
    if left_s is not None and count.ended < count.total:
        told.append(f"about {duration(left_s)} left")
    return ", ".join(told)


def duration(seconds: float) -> str:
    """For people: to the minute from two minutes on."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
