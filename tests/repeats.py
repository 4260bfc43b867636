"""Run `make test` several times: `python -m tests.repeats --times 5`. `make soak` uses this.

Stops at the first run that fails, because a flaky test is a defect. After each run it prints the rows for
docs/explanation/speed.md, with the machine's load before the run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime

_HEAD = """\

| start (UTC) | load before | minutes | |
|---|---|---|---|"""
_ROW = "| {:%Y-%m-%d %H:%M} | {:.1f} | {:.1f} | {} |"


def main(arguments: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.repeats", description=__doc__)
    parser.add_argument("--times", type=int, default=1, help="Number of runs, if none fails. (default: 1)")
    rows = []
    for _ in range(parser.parse_args(arguments).times):
        began, load, start = datetime.now(UTC), os.getloadavg()[0], time.monotonic()
        is_green = subprocess.run(["make", "test"], check=False).returncode == 0
        rows.append(_ROW.format(began, load, (time.monotonic() - start) / 60, "green" if is_green else "failed"))
        print("\n".join([_HEAD, *rows]), flush=True)
        if not is_green:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
