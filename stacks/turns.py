"""One run of a stack at a time from a checkout, and what a run that was cut short left in the backend."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class BusyError(Exception):
    """Another process holds the turn; the text names it."""


@contextmanager
def turn(record: Path) -> Iterator[bool]:
    """Hold the turn for a block; True when the run before this one was cut short.

    record: a file that holds who works, for as long as they do. The kernel drops its lock with the process
    that holds it, so a record without a lock is what a killed run leaves. An error that ends the block is a
    run that ended; an interrupt is one that was cut short.
    """
    with record.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise BusyError(file.read().strip() or "a process that has just begun") from None
        file.seek(0)
        cut_short = bool(file.read())
        _write(file.fileno(), f"process {os.getpid()}, since {time.strftime('%H:%M:%S')}\n")
        try:
            yield cut_short
        except Exception:
            _write(file.fileno(), "")
            raise
        _write(file.fileno(), "")


def stale_locks(folder: Path, any_machine: bool) -> bool:
    """Whether the locks of a backend in a folder, of which there is one at least, are all of dead runs.

    any_machine: believe of no lock that another machine made it: the folder is used by this one only.
    """
    holders = [json.loads(lock.read_text()) for lock in folder.rglob("*.json")]
    here = [holder["pid"] for holder in holders if any_machine or holder.get("hostname") == socket.gethostname()]
    return bool(holders) and len(here) == len(holders) and not any(_is_engine(pid) for pid in here)


def _is_engine(pid: int) -> bool:
    """Process ids are used again, and one that has ended keeps its own until its parent has noticed (proc_pid_stat(5))."""
    try:
        name, _, rest = Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(") ")
    except OSError:
        return False
    return name.startswith("pulumi") and rest[0] not in "ZX"


def _write(descriptor: int, text: str) -> None:
    os.ftruncate(descriptor, 0)
    os.write(descriptor, text.encode())
    os.fsync(descriptor)
