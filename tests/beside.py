"""Run two targets of make at once: `python -m tests.beside foreground background`.

The second gets the CPU time that the first leaves, and at least a tenth. Tests with time limits and the lab, which are in
the first, wait for much of their time. Tests in the second must not have time limits. Its output is printed at the end. Each
target runs to its end, even if a part of it fails. Exit code: 0 if both passed, otherwise that of one that failed.
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
"""Environment variable with the path of a file that is locked while the second target runs."""


def wait() -> None:
    """Wait until the second target has ended."""
    if place := os.environ.get(LOCK):
        with Path(place).open() as file:
            fcntl.flock(file, fcntl.LOCK_SH)


_PARTS = {"cpu.weight": {"little": 10, "equal": 100}, "cpu.shares": {"little": 102, "equal": 1024}}
"""File of a control group -> its value for each share of the CPU (kernel.org, "CPU Controller" of cgroup v2, and of v1)."""


def give(group: Path, part: Literal["little", "equal"]) -> None:
    """Set the share that a group's processes get when the CPUs are busy."""
    for name, values in _PARTS.items():
        if (file := group / name).exists():
            file.write_text(str(values[part]))


@contextmanager
def group() -> Iterator[Path]:
    """Provide a control group with a small share of the CPU. Kill the processes that are left in it."""
    name = f"beside-{os.getpid()}"
    folders = [path.parent for path in cgroups.create(name)]
    (own,) = (folder for folder in folders if any((folder / file).exists() for file in _PARTS))
    give(own, "little")
    try:
        yield own
    finally:
        cgroups.kill(name)
        cgroups.remove(name)


_BEGIN = 'echo $$ > "$0" && exec flock "$1" make "$2" --keep-going'


def main(targets: Sequence[str]) -> int:
    first, second = targets
    with group() as folder, tempfile.TemporaryFile("w+") as output, tempfile.NamedTemporaryFile() as lock:
        command = ["sh", "-c", _BEGIN, folder / "cgroup.procs", lock.name, second]
        with subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT) as beside:
            code = subprocess.run(
                ["make", first, "--keep-going"], env={**os.environ, LOCK: lock.name}, check=False
            ).returncode
            give(folder, "equal")
            other = beside.wait()
        output.seek(0)
        sys.stdout.write(output.read())
    return code or other


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
