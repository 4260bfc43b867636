"""A lock for one run of a stack at a time in a checkout, and detection of what an interrupted run left in the backend."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster.locks import locked


class BusyError(Exception):
    """Another process holds the lock; the text names it."""


@contextmanager
def turn(record: Path) -> Iterator[bool]:
    """Hold the lock for a block; yield True if the previous run was interrupted.

    record: a file that names the holder while the lock is held. The kernel releases the lock when the holding
    process dies, so a killed run leaves a record without a lock. A block that raises an Exception counts as
    finished; a KeyboardInterrupt or a kill counts as interrupted.
    """

    def busy() -> None:
        raise BusyError(record.read_text().strip() or "a process that has just started")

    with locked(record, busy=busy) as descriptor:
        cut_short = bool(record.read_text())
        _write(descriptor, f"process {os.getpid()}, since {time.strftime('%H:%M:%S')}\n")
        try:
            yield cut_short
        except Exception:
            _write(descriptor, "")
            raise
        _write(descriptor, "")


def stale_locks(folder: Path, any_machine: bool) -> bool:
    """Whether a backend in a folder has at least one lock, and all its locks belong to dead runs.

    any_machine: treat every lock as made on this machine, because no other machine uses the folder.
    """
    holders = [json.loads(lock.read_text()) for lock in folder.rglob("*.json")]
    here = [holder["pid"] for holder in holders if any_machine or holder.get("hostname") == socket.gethostname()]
    return bool(holders) and len(here) == len(holders) and not any(_is_engine(pid) for pid in here)


def _is_engine(pid: int) -> bool:
    """Whether a process is a running engine. PIDs are reused, and a dead process keeps its PID until its parent reaps it (proc_pid_stat(5))."""
    try:
        name, _, rest = Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(") ")
    except OSError:
        return False
    return name.startswith("pulumi") and rest[0] not in "ZX"


def _write(descriptor: int, text: str) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text.encode(), 0)
    os.fsync(descriptor)
