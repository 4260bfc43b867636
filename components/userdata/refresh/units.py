"""Start times of this host's units, and commands with a time-out."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from ..boot.host import Failure, run

# For a member to catch up, and again for the turns of other hosts.
PATIENCE_S = 600.0
# The kernel's time of a file lags by up to a tick.
TICK_S = 0.01


def started_at(unit: str) -> float:
    """Return the Unix time at which a unit's program, or a timer, started; 0 if it is not running."""
    times = ("ExecMainStartTimestampMonotonic", "ActiveEnterTimestampMonotonic")
    shown = run("systemctl", "show", "-pActiveState", *("-p" + name for name in times), unit)
    properties = dict(line.partition("=")[::2] for line in shown.splitlines())
    if properties.get("ActiveState") not in ("active", "reloading"):
        return 0.0
    since_boot = int(properties.get(times[0]) or properties[times[1]]) / 1e6
    return time.time() - (time.monotonic() - since_boot)


def changed_at(paths: list[str]) -> float:
    """Return the Unix time of the last change to any of the files. Failure if one is missing."""
    missing = [path for path in paths if not Path(path).exists()]
    if missing:
        raise Failure("there is no " + ", ".join(missing))
    return max(Path(path).stat().st_ctime for path in paths)


def succeeds(command: list[str], timeout_s: float = 60) -> str:
    """Return why a command failed; "" if it succeeded, or if there is none."""
    if not command:
        return ""
    try:
        done = subprocess.run(command, check=False, capture_output=True, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return f"{command[0]} did not answer within {timeout_s:.0f} s"
    return outcome(command, done.returncode, done.stdout, done.stderr)


def outcome(command: list[str], code: int, out: bytes, err: bytes) -> str:
    """Return the last output of a failed command; "" if it succeeded."""
    words = (err or out).decode(errors="replace").strip()[-500:]
    return words or f"{command[0]} exited with {code}" if code else ""
