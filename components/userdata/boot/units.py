"""Start units in order."""

from __future__ import annotations

import re
import subprocess
import time

from .host import Failure, run, say


def last_words(unit: str) -> str:
    """Return what a unit logged in its last run; with earlier runs, every failure would look new."""
    last = run("systemctl", "show", "--value", "-pInvocationID", unit).strip()
    return run("journalctl", "-n8", "-ocat", f"_SYSTEMD_INVOCATION_ID={last}")


def start_units(names: list[str], up: set[str]) -> None:
    """Start each unit once the one before is up; those in `up` were logged before.

    They are never enabled: this program starts them at every boot, after everything is in place.
    """
    for name in names:
        started = time.monotonic()
        subprocess.run(["systemctl", "reset-failed", name], check=False, capture_output=True)
        done = subprocess.run(["systemctl", "start", name], check=False, capture_output=True)
        if done.returncode:
            words = (done.stderr.decode(errors="replace") + last_words(name)).strip()
            raise Failure(f"unit {name} did not start: " + re.sub(r"\n", "\n  ", words))
        if name not in up:
            up.add(name)
            say(f"{name} is up ({time.monotonic() - started:.1f} s)")
