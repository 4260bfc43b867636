"""`make test`, several times over: `python -m tests.repeats --times 5`, of which `make soak` makes use.

Ends with the first run that fails, for a test that fails now and then is a defect to be found. After each run stand the rows for
docs/explanation/speed.md, with the load of the machine before.
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

| begun (UTC) | load before | minutes | |
|---|---|---|---|"""
_ROW = "| {:%Y-%m-%d %H:%M} | {:.1f} | {:.1f} | {} |"


def main(arguments: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.repeats", description=__doc__)
    parser.add_argument("--times", type=int, default=1, help="How many runs, if none fails. (default: 1)")
    rows = []
    for _ in range(parser.parse_args(arguments).times):
        began, load, start = datetime.now(UTC), os.getloadavg()[0], time.monotonic()
        green = subprocess.run(["make", "test"], check=False).returncode == 0
        rows.append(_ROW.format(began, load, (time.monotonic() - start) / 60, "green" if green else "failed"))
        print("\n".join([_HEAD, *rows]), flush=True)
        if not green:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
