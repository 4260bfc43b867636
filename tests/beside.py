"""Two targets of make at once: `python -m tests.beside in-lab beside`. The second has what CPU the first leaves, and a tenth at least.

A lab waits half of its time. What runs beside it must hold nothing to a time. What it prints comes at the end. Exit code: 0
where both passed, otherwise that of one that failed.
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
from typing import Literal

from sandbox.lab import cgroups

LOCK = "MENAGERIE_BESIDE"
"""Variable with a file that is locked while the second runs."""


def wait() -> None:
    """Return once nothing runs beside any more."""
    if place := os.environ.get(LOCK):
        with Path(place).open() as file:
            fcntl.flock(file, fcntl.LOCK_SH)


_PARTS = {"cpu.weight": {"little": 10, "equal": 100}, "cpu.shares": {"little": 102, "equal": 1024}}
"""File of a control group -> what it holds for each part of the CPU (kernel.org, "CPU Controller" of cgroup v2, and of v1)."""


def give(group: Path, part: Literal["little", "equal"]) -> None:
    """What a group's processes get where more want to run than can."""
    for name, values in _PARTS.items():
        if (file := group / name).exists():
            file.write_text(str(values[part]))


@contextmanager
def group() -> Iterator[Path]:
    """A control group whose processes get little. Whoever is left in it is ended."""
    name = f"beside-{os.getpid()}"
    folders = [path.parent for path in cgroups.create(name)]
    (made,) = (folder for folder in folders if any((folder / each).exists() for each in _PARTS))
    give(made, "little")
    try:
        yield made
    finally:
        cgroups.kill(name)
        cgroups.remove(name)


_BEGIN = 'echo $$ > "$0" && exec flock "$1" make "$2"'


def main(targets: Sequence[str]) -> int:
    first, second = targets
    with group() as made, tempfile.TemporaryFile("w+") as printed, tempfile.NamedTemporaryFile() as lock:
        words = ["sh", "-c", _BEGIN, made / "cgroup.procs", lock.name, second]
        with subprocess.Popen(words, stdout=printed, stderr=subprocess.STDOUT) as beside:
            code = subprocess.run(["make", first], env={**os.environ, LOCK: lock.name}, check=False).returncode
            give(made, "equal")
            other = beside.wait()
        printed.seek(0)
        sys.stdout.write(printed.read())
    return code or other


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
