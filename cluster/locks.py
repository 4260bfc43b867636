"""Locks between processes of one machine."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path, *, mode: int = 0o644, busy: Callable[[], None] = lambda: None) -> Iterator[int]:
    """Hold an exclusive lock on a folder, or on a file, which is created if missing, and yield its descriptor.

    mode: of a file that this creates. busy: called once if another process holds the lock. Then this waits for the lock,
    unless `busy` raises.

    The kernel releases the lock with its last holder (flock(2)), so a killed process leaves none behind. A child process that
    inherits the descriptor holds the lock until it exits, even when its parent is killed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
    descriptor = os.open(path, flags | os.O_CLOEXEC, mode)
    try:
        if not _taken(descriptor):
            busy()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    """Take the lock if nobody holds it, and return whether this did."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
