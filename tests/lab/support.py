"""Helpers for the lab's tests: the command as a user runs it, and what a lab leaves on a machine."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.lab import cgroups, state

ROOT = Path(__file__).resolve().parents[2]
MENAGERIE = ROOT / "menagerie"


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def menagerie(*arguments: str, timeout_s: float = 900, interrupt_after_s: float | None = None) -> Run:
    """Run the command as a user does, without a terminal; interrupt it after a time if one is given."""
    with subprocess.Popen(
        [MENAGERIE, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        if interrupt_after_s is not None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(interrupt_after_s)
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=timeout_s)
    return Run(process.returncode, out, err)


def clone(place: Path) -> Path:
    """Clone what is committed here, and use this checkout's Python: no state, no keys, nothing that a verb wrote."""
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(place)], check=True)
    (place / ".venv").symlink_to(ROOT / ".venv")
    return place


@contextmanager
def polling_often(poll: Callable[[str], None], names: Sequence[str]) -> Iterator[None]:
    """Let hosts query their store every few seconds instead of every ten minutes, for a block."""
    over = threading.Event()

    def poll_repeatedly(name: str) -> None:
        while not over.wait(3):
            poll(name)

    threads = [threading.Thread(target=poll_repeatedly, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def traces() -> dict[str, set[str]]:
    """Return everything of the kinds that a lab creates and could leave on the machine."""
    return {
        "namespaces": _lines("ip", "netns", "list"),
        "interfaces": {entry.name for entry in Path("/sys/class/net").iterdir()},
        "routes": _lines("ip", "-4", "route"),
        "mounts": {line.split(" ")[1] for line in Path("/proc/mounts").read_text().splitlines()},
        "disks": _lines("losetup", "--list", "--noheadings", "--output", "BACK-FILE"),
        "cgroups": {str(path) for path in Path("/sys/fs/cgroup").glob("*/*") if path.is_dir()},
        "processes": _processes(),
        "state": {str(path) for path in (Path("/var/lib"), Path("/run")) for path in path.glob("menagerie*")},
    }


def _lines(*command: str) -> set[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {line.strip() for line in done.stdout.splitlines()}


def _processes() -> set[str]:
    """Return the processes of this checkout: in its lab's control groups, or started from it."""
    processes = set()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            groups, command = (entry / "cgroup").read_text(), (entry / "cmdline").read_text()
            name, _, state_ = (entry / "stat").read_text().partition("(")[2].rpartition(") ")
        except OSError:
            continue
        if state_[0] in "ZX":  # dead, and not yet reaped by the machine's init
            continue
        if f"{cgroups.ROOT}/{state.lab_id()}" in groups or str(ROOT) in command:
            processes.add(f"{name} {entry.name}")
    return processes
