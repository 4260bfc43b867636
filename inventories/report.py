"""Results of a run of site.yml: progress while it runs, and a report at its end."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class TaskStatus(StrEnum):
    """How a task ended on a host, or that it started."""

    STARTED = "started"
    OK = "ok"
    CHANGED = "changed"
    SKIPPED = "skipped"
    FAILED = "failed"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True)
class Progress:
    """One task on one host. number: counts the host's tasks from 1. total: their approximate number."""

    host: str
    role: str
    task: str
    status: TaskStatus
    number: int
    total: int
    seconds: float = 0.0
    """Time since the start of the run."""
    message: str = ""
    """Why the task failed, or why the host can't be reached."""
    is_last: bool = False
    """Whether this is the host's last task in this run."""


@dataclass(frozen=True)
class Failure:
    """A task that failed, or a host that couldn't be reached."""

    host: str
    role: str
    task: str
    message: str
    unreachable: bool = False


@dataclass(frozen=True)
class HostReport:
    """Numbers of tasks on a host. `ok` includes `changed`, as in Ansible's recap."""

    ok: int = 0
    changed: int = 0
    failed: int = 0
    unreachable: int = 0
    skipped: int = 0
    seconds: float = 0.0
    """Time from the first task's start to the last one's end."""

    @property
    def tasks(self) -> int:
        return self.ok + self.failed + self.skipped + self.unreachable

    @property
    def succeeded(self) -> bool:
        return not self.failed and not self.unreachable


@dataclass(frozen=True)
class TaskTime:
    """How long one task took on the hosts that ran it, as measured on the operator's machine."""

    role: str
    task: str
    hosts: int
    seconds: float
    """Sum over all hosts."""
    longest: float
    slowest: str
    """The slowest host."""

    @property
    def mean(self) -> float:
        return self.seconds / self.hosts


@dataclass(frozen=True)
class FailureGroup:
    """Failures that only differ in the host's name and addresses. message: the first host's."""

    role: str
    task: str
    message: str
    unreachable: bool
    hosts: tuple[str, ...]

    def __str__(self) -> str:
        return f"{named(self.hosts)}: {self.role}: {self.task}: {self.message}"


@dataclass(frozen=True)
class RunReport:
    """Report of a run. Distinguishes failed and unreachable hosts."""

    hosts: Mapping[str, HostReport]
    failures: tuple[Failure, ...] = ()
    changes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Host -> tasks that changed it, or in check mode would."""
    diffs: Mapping[str, str] = field(default_factory=dict)
    """Host -> changes as unified diff text; only with diff."""
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Host -> warnings of its tasks."""
    seconds: float = 0.0
    canceled: bool = False
    times: tuple[TaskTime, ...] = ()
    """Times of each task, the one with the largest sum first."""
    left_out: tuple[str, ...] = ()
    """Hosts that were skipped, because according to the journal they are already in the desired state."""
    not_begun: tuple[str, ...] = ()
    """Hosts that the run didn't get to, because it was interrupted or reached the limit of failures."""

    @property
    def failed(self) -> tuple[str, ...]:
        return tuple(name for name, host in self.hosts.items() if host.failed)

    @property
    def unreachable(self) -> tuple[str, ...]:
        return tuple(name for name, host in self.hosts.items() if host.unreachable)

    @property
    def changed(self) -> int:
        """Number of tasks that changed something, on all hosts."""
        return sum(host.changed for host in self.hosts.values())

    @property
    def succeeded(self) -> bool:
        return not self.canceled and not self.not_begun and all(host.succeeded for host in self.hosts.values())

    @property
    def groups(self) -> tuple[FailureGroup, ...]:
        """Failures, with similar ones grouped, those with most hosts first."""
        alike: dict[tuple[str, str, str, bool], list[Failure]] = defaultdict(list)
        for failure in self.failures:
            alike[failure.role, failure.task, _impersonal(failure), failure.unreachable].append(failure)
        groups = [
            FailureGroup(role, task, own[0].message, unreachable, tuple(failure.host for failure in own))
            for (role, task, _, unreachable), own in alike.items()
        ]
        return tuple(sorted(groups, key=lambda group: -len(group.hosts)))

    def slowest(self, count: int) -> tuple[tuple[str, float], ...]:
        """Return the slowest hosts, with their seconds."""
        times = sorted(((name, host.seconds) for name, host in self.hosts.items()), key=lambda item: -item[1])
        return tuple(times[:count])

    @property
    def exit_code(self) -> int:
        """Exit code of ansible-playbook: 0 success, 2 a task failed, 4 only unreachable hosts; or 130 for canceled."""
        if self.canceled:
            return 130
        return 2 if self.failed else 4 if self.unreachable else 0

    def to_json(self) -> dict[str, Any]:
        """Return the report in the form of `--json`."""
        return {
            "hosts": {
                name: {
                    "ok": host.ok,
                    "changed": host.changed,
                    "failed": host.failed,
                    "unreachable": host.unreachable,
                    "skipped": host.skipped,
                    "tasks": host.tasks,
                    "seconds": round(host.seconds, 3),
                    "changes": list(self.changes.get(name, ())),
                    "notes": list(self.notes.get(name, ())),
                }
                for name, host in self.hosts.items()
            },
            "failures": [vars(failure) for failure in self.failures],
            "groups": [{**vars(group), "hosts": list(group.hosts)} for group in self.groups],
            "tasks": [{**vars(time), "mean": time.mean} for time in self.times],
            "left_out": list(self.left_out),
            "not_begun": list(self.not_begun),
            "seconds": round(self.seconds, 3),
            "canceled": self.canceled,
            "exit_code": self.exit_code,
        }


_SHOWN = 3
_ADDRESS = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b")


def named(hosts: Sequence[str]) -> str:
    """List a few hosts by name, many by number and the first ones."""
    if len(hosts) <= _SHOWN:
        return ", ".join(hosts)
    return f"{len(hosts)} hosts ({', '.join(hosts[:_SHOWN])} …)"


def merged(reports: Iterable[RunReport]) -> RunReport:
    """Merge the reports of consecutive runs on different hosts."""
    parts = list(reports)
    return RunReport(
        {name: host for part in parts for name, host in part.hosts.items()},
        tuple(failure for part in parts for failure in part.failures),
        {name: tasks for part in parts for name, tasks in part.changes.items()},
        {name: diff for part in parts for name, diff in part.diffs.items()},
        {name: notes for part in parts for name, notes in part.notes.items()},
        sum(part.seconds for part in parts),
        any(part.canceled for part in parts),
        _merged_times(time for part in parts for time in part.times),
    )


def _merged_times(times: Iterable[TaskTime]) -> tuple[TaskTime, ...]:
    merged_by_task: dict[tuple[str, str], TaskTime] = {}
    for time in times:
        before = merged_by_task.get((time.role, time.task))
        if before:
            worst = max(before, time, key=lambda each: each.longest)
            hosts, seconds = before.hosts + time.hosts, before.seconds + time.seconds
            time = TaskTime(time.role, time.task, hosts, seconds, worst.longest, worst.slowest)
        merged_by_task[time.role, time.task] = time
    return tuple(sorted(merged_by_task.values(), key=lambda time: -time.seconds))


def _impersonal(failure: Failure) -> str:
    """Return the message without the host's name and addresses."""
    return _ADDRESS.sub("ADDRESS", failure.message.replace(failure.host, "HOST"))
