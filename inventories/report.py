"""What a run of site.yml tells: progress while it runs, and a report at its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """How a task ended on a host, or that it began."""

    STARTED = "started"
    OK = "ok"
    CHANGED = "changed"
    SKIPPED = "skipped"
    FAILED = "failed"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True)
class Progress:
    """One task on one host. `number` counts the host's tasks from 1, of about `total`."""

    host: str
    role: str
    task: str
    status: Status
    number: int
    total: int
    seconds: float = 0.0
    """Since the run began."""


@dataclass(frozen=True)
class Failure:
    """A task that failed, or a host that could not be reached."""

    host: str
    role: str
    task: str
    message: str
    unreachable: bool = False


@dataclass(frozen=True)
class HostReport:
    """Counts of tasks. `ok` includes `changed`, as in Ansible's own recap."""

    ok: int = 0
    changed: int = 0
    failed: int = 0
    unreachable: int = 0
    skipped: int = 0
    seconds: float = 0.0
    """From the first task's start to the last one's end."""

    @property
    def tasks(self) -> int:
        return self.ok + self.failed + self.skipped + self.unreachable

    @property
    def succeeded(self) -> bool:
        return not self.failed and not self.unreachable


@dataclass(frozen=True)
class RunReport:
    """A whole run. Hosts that failed and hosts that could not be reached are told apart."""

    hosts: Mapping[str, HostReport]
    failures: tuple[Failure, ...] = ()
    changes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Host -> the tasks that changed it, or in check mode would."""
    diffs: Mapping[str, str] = field(default_factory=dict)
    """Host -> what would change or was changed, as unified text; with diff only."""
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Host -> warnings of its tasks."""
    seconds: float = 0.0
    canceled: bool = False

    @property
    def failed(self) -> tuple[str, ...]:
        return tuple(name for name, host in self.hosts.items() if host.failed)

    @property
    def unreachable(self) -> tuple[str, ...]:
        return tuple(name for name, host in self.hosts.items() if host.unreachable)

    @property
    def changed(self) -> int:
        """Tasks that changed something, on all hosts together."""
        return sum(host.changed for host in self.hosts.values())

    @property
    def succeeded(self) -> bool:
        return not self.canceled and all(host.succeeded for host in self.hosts.values())

    @property
    def exit_code(self) -> int:
        """ansible-playbook's own: 0 all well, 2 a task failed, 4 only unreachable hosts; 130 canceled."""
        if self.canceled:
            return 130
        return 2 if self.failed else 4 if self.unreachable else 0

    def to_json(self) -> dict[str, Any]:
        """The report as `--json` gives it."""
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
            "seconds": round(self.seconds, 3),
            "canceled": self.canceled,
            "exit_code": self.exit_code,
        }
