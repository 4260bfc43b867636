"""Build programs, then run two targets of make at once: `python -m tests.beside build foreground background`.

The last one starts first and gets the CPU time that the others leave, and at least a tenth. Tests with time limits and the
lab, which are in the foreground, wait for much of their time. Tests in the background must not have time limits, and those
that need programs wait until these are built. Its output is printed at the end. Each target runs to its end, even if a part
of it fails. Only a failed build, a signal, or a background that hangs ends all; after the last two, the background's output is
printed, the stacks of its tests, and its processes. Exit code: 0 if all passed, otherwise that of one that failed.
"""

from __future__ import annotations

import fcntl
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Literal, Never

from sandbox.lab import cgroups
from tools import manifest
from tools.build import states

LOCK = "MENAGERIE_BESIDE"
"""Environment variable with the path of a file that is locked while the second target runs."""


BUILDING = "MENAGERIE_BUILDING"
"""Environment variable with the path of a file that is locked while programs are built; only set if one is missing."""


_WAITS = "the first target waits for the last one"
"""What the file of LOCK says then."""


def wait() -> None:
    """Wait until the last target has ended."""
    if place := os.environ.get(LOCK):
        Path(place).write_text(_WAITS)
    _wait_for(LOCK)


def wait_for_programs() -> None:
    """Wait until the programs are built."""
    _wait_for(BUILDING)


def _wait_for(variable: str) -> None:
    if place := os.environ.get(variable):
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
    build, first, second = targets
    with _ending_on_sigterm(), group() as folder, tempfile.TemporaryFile("w+") as output, _locks() as (lock, building):
        environment = {**os.environ, LOCK: lock.name, BUILDING: building.name if is_program_missing() else ""}
        command = ["sh", "-c", _BEGIN, folder / "cgroup.procs", lock.name, second]
        with subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment) as beside:
            try:
                if code := _make(build, environment):
                    cgroups.kill(folder.name)
                    return code
                fcntl.flock(building, fcntl.LOCK_UN)
                code, other = _ends(first, environment, beside, _Watch(folder, output, Path(lock.name)))
            except (KeyboardInterrupt, SystemExit):
                _print_all(folder.name, output)
                cgroups.kill(folder.name)
                raise
        _print(output)
    return code or other


@contextmanager
def _ending_on_sigterm() -> Iterator[None]:
    """Turn SIGTERM into SystemExit, so that what has been printed so far is seen, and no process or control group is left."""

    def end(_number: int, _frame: FrameType | None) -> Never:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise SystemExit(128 + signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


HANGS_S = 900.0
"""Seconds without output after which the background hangs, once nothing else runs. Its longest test takes 200 s then."""


@dataclass
class _Watch:
    """Watches the background from when nothing else runs. folder: its control group. lock: the file of LOCK."""

    folder: Path
    output: IO[str]
    lock: Path
    size: int = -1
    since: float = 0

    def look(self, *, alone: bool) -> None:
        """Give the background its share, alone or not. Errors: SystemExit if it hangs."""
        if not alone and not self.lock.read_text():
            return
        if self.size < 0:
            give(self.folder, "equal")
        if self.size != (size := os.fstat(self.output.fileno()).st_size):
            self.size, self.since = size, time.monotonic()
        elif time.monotonic() > self.since + HANGS_S:
            print(f"what runs next to the lab hangs: no output for {HANGS_S:.0f} s", flush=True)
            raise SystemExit(1)


def _ends(
    first: str, environment: Mapping[str, str], beside: subprocess.Popen[bytes], watch: _Watch
) -> tuple[int, int]:
    """Run the first target, and wait until the background has ended too. Return their exit codes."""
    with _running(first, environment) as process:
        while process.poll() is None or beside.poll() is None:
            time.sleep(0.1)
            if beside.returncode is None:
                watch.look(alone=process.returncode is not None)
    return process.returncode, beside.returncode


def _print_all(group: str, output: IO[str]) -> None:
    """Print the background's output, with the stacks of tests that run, and its processes."""
    for pid in filter(_prints_stacks, cgroups.members(group)):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGUSR1)
        time.sleep(1)  # their lines would mix
    _print(output)
    _print_processes(group)


def _prints_stacks(pid: int) -> bool:
    """Whether a process handles SIGUSR1, at which pytest prints the stacks of its threads (tests/conftest.py)."""
    with suppress(OSError):
        (caught,) = re.findall(r"^SigCgt:\s*(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
        (command, *_) = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return bool(int(caught, 16) >> (signal.SIGUSR1 - 1) & 1) and b"python" in command
    return False


def _print(output: IO[str]) -> None:
    output.seek(0)
    sys.stdout.write(output.read())
    sys.stdout.flush()


def _print_processes(group: str) -> None:
    """Print what runs in a control group and for how long: a process that hangs is among them."""
    members = ",".join(map(str, cgroups.members(group)))
    if members:
        subprocess.run(["ps", "-ww", "-o", "pid,ppid,etime,time,stat,wchan:20,args", "-p", members], check=False)


@contextmanager
def _locks() -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Provide the files of LOCK and BUILDING, the second one locked."""
    with tempfile.NamedTemporaryFile() as lock, tempfile.NamedTemporaryFile() as building:
        fcntl.flock(building, fcntl.LOCK_EX)
        yield lock, building


def is_program_missing() -> bool:
    """Whether the cache lacks a program that tests need."""
    needed = manifest.unasked()
    return any(row["program"] in needed and not row["built"] for row in states())


def _make(target: str, environment: Mapping[str, str]) -> int:
    with _running(target, environment) as process:
        return process.wait()


@contextmanager
def _running(target: str, environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["make", target, "--keep-going"], env=environment) as process:
        try:
            yield process
        except (KeyboardInterrupt, SystemExit):
            process.terminate()
            raise


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
