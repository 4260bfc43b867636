"""Collect ansible-runner's events into `Progress` and a `RunReport`."""

from __future__ import annotations

import difflib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from inventories.matching import Last
from inventories.report import Failure, HostReport, Progress, RunReport, TaskStatus, TaskTime

_ENDS = {
    "runner_on_ok": TaskStatus.OK,
    "runner_on_skipped": TaskStatus.SKIPPED,
    "runner_on_failed": TaskStatus.FAILED,
    "runner_on_unreachable": TaskStatus.UNREACHABLE,
}
# Ansible's messages if the command's own output says more.
_EMPTY_MESSAGES = ("", "non-zero return code", "The command exited with a non-zero return code.")


class Collector:
    """Collects events one at a time, and calls `on_progress` for every task that starts or ends on a host."""

    def __init__(
        self, total: int, on_progress: Callable[[Progress], None] | None = None, last: Last | None = None
    ) -> None:
        """last: the last task of a host in the run."""
        self._total = total
        self._last = last
        self._on_progress = on_progress
        self._counts: dict[str, Counter[TaskStatus]] = defaultdict(Counter)
        self._times: dict[str, list[float]] = defaultdict(list)
        self._first: float | None = None
        self._begun: dict[str, float] = {}
        self._tasks: dict[tuple[str, str], list[tuple[float, str]]] = defaultdict(list)
        self._failures: list[Failure] = []
        self._changes: dict[str, list[str]] = defaultdict(list)
        self._diffs: dict[str, list[str]] = defaultdict(list)
        self._notes: dict[str, list[str]] = defaultdict(list)

    def event(self, event: Mapping[str, Any]) -> bool:
        """Read one event of ansible-runner. Returns False, so that ansible-runner doesn't write it to a file."""
        self._read(event)
        return False

    def _read(self, event: Mapping[str, Any]) -> None:
        kind = event.get("event", "")
        data = event.get("event_data") or {}
        host = data.get("host")
        if not host or (kind not in _ENDS and kind != "runner_on_start"):
            return
        now = datetime.fromisoformat(event["created"]).timestamp()
        self._first = now if self._first is None else self._first
        self._times[host].append(now)
        status = self._end(kind, host, data) if kind in _ENDS else TaskStatus.STARTED
        role, task = data.get("role", ""), data.get("task", "")
        if status is TaskStatus.STARTED:
            self._begun[host] = now
        elif status is not TaskStatus.SKIPPED:
            self._tasks[role, task].append((now - self._begun.get(host, now), host))
        if self._on_progress:
            number = self._counts[host].total() + (status is TaskStatus.STARTED)
            broken = status in (TaskStatus.FAILED, TaskStatus.UNREACHABLE)
            self._on_progress(
                Progress(
                    host,
                    role,
                    task,
                    status,
                    number,
                    max(number, self._total),
                    now - self._first,
                    self._failures[-1].message if broken else "",
                    broken
                    or (status is not TaskStatus.STARTED and self._last is not None and self._last.is_it(role, task)),
                )
            )

    def _end(self, kind: str, host: str, data: Mapping[str, Any]) -> TaskStatus:
        result = data.get("res") or {}
        status = _ENDS[kind]
        if status is TaskStatus.FAILED and data.get("ignore_errors"):
            status = TaskStatus.OK
        if status is TaskStatus.OK and result.get("changed"):
            status = TaskStatus.CHANGED
            self._changes[host].append(data.get("task", ""))
        self._counts[host][status] += 1
        self._diffs[host].extend(_diff_lines(result.get("diff")))
        self._notes[host].extend(
            warning for warning in result.get("warnings") or () if warning not in self._notes[host]
        )
        if status in (TaskStatus.FAILED, TaskStatus.UNREACHABLE):
            unreachable = status is TaskStatus.UNREACHABLE
            self._failures.append(
                Failure(host, data.get("role", ""), data.get("task", ""), failure_message(result), unreachable)
            )
        return status

    def report(self, seconds: float, canceled: bool) -> RunReport:
        """Return the report so far. Hosts on which no task ended are missing; the caller knows which it asked for."""
        return RunReport(
            {host: self._host(host) for host, counts in sorted(self._counts.items()) if counts},
            tuple(self._failures),
            {host: tuple(tasks) for host, tasks in sorted(self._changes.items())},
            {host: "".join(lines) for host, lines in sorted(self._diffs.items()) if lines},
            {host: tuple(notes) for host, notes in sorted(self._notes.items()) if notes},
            seconds,
            canceled,
            self._task_times(),
        )

    def _task_times(self) -> tuple[TaskTime, ...]:
        totals = [
            TaskTime(role, task, len(times), sum(seconds for seconds, _ in times), *max(times))
            for (role, task), times in self._tasks.items()
        ]
        return tuple(sorted(totals, key=lambda time: -time.seconds))

    def _host(self, host: str) -> HostReport:
        counts, times = self._counts[host], self._times[host]
        return HostReport(
            ok=counts[TaskStatus.OK] + counts[TaskStatus.CHANGED],
            changed=counts[TaskStatus.CHANGED],
            failed=counts[TaskStatus.FAILED],
            unreachable=counts[TaskStatus.UNREACHABLE],
            skipped=counts[TaskStatus.SKIPPED],
            seconds=max(times) - min(times),
        )


def failure_message(result: Mapping[str, Any]) -> str:
    """Return the most specific error message: that of the module, the command, or the check of arguments."""
    if result.get("argument_errors"):
        return "; ".join(str(error) for error in result["argument_errors"])
    message = str(result.get("msg") or "").strip().removeprefix("Task failed: ")
    output = str(result.get("stderr") or result.get("stdout") or "").strip()
    if output and message in _EMPTY_MESSAGES:
        message = output
    return _host_key_trouble(message) or message or str(result.get("censored") or "no reason given")


def _host_key_trouble(message: str) -> str:
    """Replace ssh's message about host keys, which advises to edit a file that only exists during the run."""
    if "Host key verification failed" not in message:
        return ""
    fingerprint = re.search(r"SHA256:[A-Za-z0-9+/]+", message)
    if "HAS CHANGED" in message:
        key = f" {fingerprint[0]}" if fingerprint else ""
        return f"its SSH host key{key} has changed: the address belongs to another machine, or this one was reinstalled"
    return "its SSH host key isn't known; log in once with ssh, compare the fingerprint, then run again"


def _diff_lines(diff: Any) -> Iterator[str]:
    """Yield a module's diff, which is one mapping or a list of them, as unified diff text."""
    for entry in diff if isinstance(diff, list) else [diff] if diff else []:
        if "prepared" in entry:
            yield entry["prepared"]
        before, after = str(entry.get("before") or ""), str(entry.get("after") or "")
        yield from difflib.unified_diff(
            before.splitlines(keepends=True),
            after.splitlines(keepends=True),
            str(entry.get("before_header") or "before"),
            str(entry.get("after_header") or "after"),
        )
