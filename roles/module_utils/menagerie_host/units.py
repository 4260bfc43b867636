"""Enable systemd units, and run them with the current files.

A handler would be lost if a run is killed between a change and the restart. Comparing times instead lets the next run
notice.
"""

from __future__ import annotations

import os
import subprocess
import time
from typing import Any, NamedTuple

from . import Refused, run

PROPERTIES = "LoadState,ActiveState,UnitFileState,NeedDaemonReload,InactiveExitTimestampMonotonic"
OPTIONS = {
    "unit": {"type": "str", "required": True},
    "inputs": {"type": "list", "elements": "path", "default": []},
    "restarted": {"type": "str", "choices": ["always", "if_running"], "default": "always"},
}
"""A module's options for each unit."""
RUNNING = ("active", "activating", "reloading")


def parse_properties(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def started_at(properties: dict[str, str], now: float, monotonic: float) -> float:
    """Return the Unix time when the unit last left the inactive state.

    It is counted back on the monotonic clock, so a clock that was set after the start does not matter.
    """
    return now - (monotonic - int(properties.get("InactiveExitTimestampMonotonic") or 0) / 1e6)


def newer_inputs(inputs: list[str], start: float, now: float) -> list[str]:
    """Return inputs written after `start`. Times in the future are ignored: the clock has been set back since."""
    times = {path: os.stat(path).st_mtime for path in inputs if os.path.exists(path)}
    return [path for path, written in times.items() if start < written <= now]


def planned(properties: dict[str, str], newer: list[str], restarted: str) -> list[str]:
    """Return the systemctl verbs that are needed, in order."""
    actions = []
    running = properties.get("ActiveState") in RUNNING
    if properties.get("NeedDaemonReload") == "yes" or properties.get("LoadState") == "not-found":
        actions.append("daemon-reload")
    # A static unit has nothing to enable: another unit starts it.
    if properties.get("UnitFileState") not in ("enabled", "static"):
        actions.append("enable")
    if running and (newer or "daemon-reload" in actions):
        actions.append("restart")
    if not running and restarted == "always":
        actions.append("start")
    return actions


class Current(NamedTuple):
    """actions: what was, or would be, done. newer: inputs that caused a restart."""

    actions: list[str]
    newer: list[str]


def converge(units: list[dict[str, Any]], check: bool, written: frozenset[str] = frozenset()) -> Current:
    """Start a stopped unit; restart one that started before any of its inputs was written.

    written: paths that a dry run would write; they count as newer.
    """
    actions, newer = [], []
    for entry in units:
        unit = entry["unit"]
        properties, changed = _looked_at(unit, entry["inputs"])
        changed += [path for path in entry["inputs"] if path not in changed and _holds(path, written)]
        needed = planned(properties, changed, entry["restarted"])
        if not check:
            for action in needed:
                _act(action, unit)
        actions += [f"{action} {unit}" for action in needed]
        newer += changed if "restart" in needed else []
    return Current(actions, newer)


def outdated(unit: str, inputs: list[str]) -> bool:
    """Return whether a unit runs that started before any of its inputs was written."""
    properties, newer = _looked_at(unit, inputs)
    return bool(newer) and properties.get("ActiveState") in RUNNING


def _looked_at(unit: str, inputs: list[str]) -> tuple[dict[str, str], list[str]]:
    """Return a unit's properties, and which of its inputs were written after its start."""
    text = run(["systemctl", "show", unit, "--property", PROPERTIES], f"systemctl show {unit}")
    properties = parse_properties(text)
    now = time.time()
    return properties, newer_inputs(inputs, started_at(properties, now, time.monotonic()), now)


def _holds(path: str, written: frozenset[str]) -> bool:
    return any(other == path or other.startswith(path + "/") for other in written)


def _act(action: str, unit: str) -> None:
    command = ["systemctl", action] if action == "daemon-reload" else ["systemctl", action, unit]
    try:
        run(command, " ".join(command))
    except Refused as error:
        journal = ["journalctl", "--no-pager", "-o", "cat", "-n", "15", "-u", unit]
        last_lines = subprocess.run(journal, check=False, capture_output=True).stdout.decode(errors="replace").strip()
        raise Refused(f"{error}\nits last lines:\n{last_lines}") from None
