"""Progress of a run on many hosts: counts, and the remaining time. No I/O, no clock."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from inventories.report import Progress, TaskStatus


@dataclass(frozen=True)
class Count:
    """Numbers of hosts by state."""

    total: int
    done: int
    changed: int
    """Number of done hosts that changed."""
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
    """Counts hosts from each progress of a run and its time, in seconds of any clock."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._began: dict[str, float] = {}
        self._running: dict[str, str] = {}
        self._changed: set[str] = set()
        self._ended: dict[str, TaskStatus] = {}
        self._taken_s = 0.0
        self._most_running = 0
        self.failures: Counter[str] = Counter()
        """Reason of failures, without the host's name -> number of hosts."""

    def hear(self, progress: Progress, now: float) -> None:
        """Count one progress. Ignores hosts that have already ended."""
        host = progress.host
        if host in self._ended:
            return
        self._began.setdefault(host, now)
        self._running[host] = progress.role
        self._most_running = max(self._most_running, len(self._running))
        if progress.status is TaskStatus.CHANGED:
            self._changed.add(host)
        if progress.is_last:
            self._end(progress, now)

    def _end(self, progress: Progress, now: float) -> None:
        broken = progress.status in (TaskStatus.FAILED, TaskStatus.UNREACHABLE)
        self._ended[progress.host] = progress.status if broken else TaskStatus.OK
        self._running.pop(progress.host)
        self._taken_s += now - self._began[progress.host]
        if broken:
            lines = progress.message.replace(progress.host, "the host").strip().splitlines() or [""]
            self.failures[f"{progress.role or progress.task}: {lines[0]}"] += 1

    @property
    def running(self) -> dict[str, str]:
        """Running hosts -> current role, in order of start."""
        return dict(self._running)

    @property
    def count(self) -> Count:
        kinds = Counter(self._ended.values())
        done = kinds[TaskStatus.OK]
        changed = sum(self._ended.get(host) is TaskStatus.OK for host in self._changed)
        return Count(
            self._total, done, changed, kinds[TaskStatus.FAILED], kinds[TaskStatus.UNREACHABLE], len(self._running)
        )

    def left_s(self) -> float | None:
        """Estimate the seconds until all hosts have ended, from those that have; None before the first has.

        Running hosts count as half done.
        """
        count = self.count
        if not count.ended or not self._most_running:
            return None
        mean_s = self._taken_s / count.ended
        return mean_s * (count.waiting + count.running / 2) / self._most_running


def words(count: Count, left_s: float | None) -> str:
    """Return the count in one line."""
    parts = [f"{count.done} of {count.total} hosts done" + (f" ({count.changed} changed)" if count.changed else "")]
    for number, name in ((count.failed, "failed"), (count.unreachable, "unreachable"), (count.running, "running")):
        if number:
            parts.append(f"{number} {name}")
    if left_s is not None and count.ended < count.total:
        parts.append(f"about {duration(left_s)} left")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """Format seconds for people, with minutes from two minutes on."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
