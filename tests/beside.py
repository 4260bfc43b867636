"""Two targets of make at once: `python -m tests.beside in-lab unhurried`. The second has what CPU the first leaves.

A lab waits half of its time. What runs beside it must have no clock: it may stand still while the lab works. What it prints comes
at the end. Exit code: 0 where both passed, otherwise that of one that failed.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lab import cgroups

LOCK = "MENAGERIE_BESIDE"
"""Variable with a file that is locked while the second runs."""


def wait() -> None:
    """Return once nothing runs beside any more."""
    if place := os.environ.get(LOCK):
        with Path(place).open() as file:
            fcntl.flock(file, fcntl.LOCK_SH)


@contextmanager
def idle_group() -> Iterator[Path]:
    """A control group whose processes run where no other wants to (kernel.org, "cpu.idle" of "CPU Controller")."""
    (group,) = (path.parent for path in cgroups.create(f"beside-{os.getpid()}") if (path.parent / "cpu.idle").exists())
    (group / "cpu.idle").write_text("1")
    try:
        yield group
    finally:
        cgroups.kill(group.name)
        cgroups.remove(group.name)


_BEGIN = 'echo $$ > "$0" && exec flock "$1" make "$2"'


def main(targets: Sequence[str]) -> int:
    first, second = targets
    with idle_group() as group, tempfile.TemporaryFile("w+") as printed, tempfile.NamedTemporaryFile() as lock:
        words = ["sh", "-c", _BEGIN, group / "cgroup.procs", lock.name, second]
        with subprocess.Popen(words, stdout=printed, stderr=subprocess.STDOUT) as beside:
            code = subprocess.run(["make", first], env={**os.environ, LOCK: lock.name}, check=False).returncode
            (group / "cpu.idle").write_text("0")
            other = beside.wait()
        printed.seek(0)
        sys.stdout.write(printed.read())
    return code or other


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
