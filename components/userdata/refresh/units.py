"""Units of this host: since when they run, and commands that have a time to succeed in."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from ..boot.host import Failure, run

# A member that has to catch up is waited for, and as long for the turns of others.
PATIENCE_S = 600.0
# The kernel's time of a file is up to a tick behind.
TICK_S = 0.01


def started_at(unit: str) -> float:
    """Unix time at which the unit's program was started, or a timer; 0 where it does not run."""
    times = ("ExecMainStartTimestampMonotonic", "ActiveEnterTimestampMonotonic")
    shown = run("systemctl", "show", "-pActiveState", *("-p" + name for name in times), unit)
    found = dict(line.partition("=")[::2] for line in shown.splitlines())
    if found.get("ActiveState") not in ("active", "reloading"):
        return 0.0
    since_boot = int(found.get(times[0]) or found[times[1]]) / 1e6
    return time.time() - (time.monotonic() - since_boot)


def changed_at(paths: list[str]) -> float:
    """When the newest of the files came to be as it is; Failure where one is missing."""
    missing = [path for path in paths if not Path(path).exists()]
    if missing:
        raise Failure("there is no " + ", ".join(missing))
    return max(Path(path).stat().st_ctime for path in paths)


def succeeds(command: list[str], timeout_s: float = 60) -> str:
    """Why a command did not succeed; nothing where it did, or where there is none."""
    if not command:
        return ""
    try:
        done = subprocess.run(command, check=False, capture_output=True, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return f"{command[0]} gave no answer within {timeout_s:.0f} s"
    return outcome(command, done.returncode, done.stdout, done.stderr)


def outcome(command: list[str], code: int, out: bytes, err: bytes) -> str:
    """The last words of a command that did not succeed; nothing of one that did."""
    words = (err or out).decode(errors="replace").strip()[-500:]
    return words or f"{command[0]} ended with {code}" if code else ""
