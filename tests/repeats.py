"""Run `make test` several times: `python -m tests.repeats --times 5`. `make soak` uses this.

Stops at the first run that fails, because a flaky test is a defect. After each run it prints the rows for the table of whole
runs in docs/explanation/speed.md. The cells of the three parts stay empty: the last lines of pytest, of each part, have the
times.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from tests import beside
from tests.bench import machine

HEAD = """\
| started (UTC) | machine | caches | load before | timed | lab | next to it | all | busy, both cores | |
|---|---|---|---|---|---|---|---|---|---|"""
_ROW = "| {:%Y-%m-%d %H:%M} | {} | {} | {:.1f} | | | | {:.1f} | {:,.0f} s | {} |"


def main(arguments: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.repeats", description=__doc__)
    parser.add_argument("--times", type=int, default=1, help="Number of runs, if none fails. (default: 1)")
    rows = []
    for _ in range(parser.parse_args(arguments).times):
        caches = "empty" if beside.is_program_missing() else "warm"
        began, load, start, busy = datetime.now(UTC), machine.load(), time.monotonic(), machine.cpu_s()[0]
        is_green = subprocess.run(["make", "test"], check=False).returncode == 0
        minutes, busy = (time.monotonic() - start) / 60, machine.cpu_s()[0] - busy
        rows.append(_ROW.format(began, _system(), caches, load, minutes, busy, "green" if is_green else "failed"))
        print("\n".join(["", HEAD, *rows]), flush=True)
        if not is_green:
            return 1
    return 0


def _system() -> str:
    names = platform.freedesktop_os_release()
    return f"{names['ID'].capitalize()} {names.get('VERSION_ID', '')}".strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
