"""Where built and downloaded things are kept, and the lock that keeps two makers apart."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def root() -> Path:
    """The cache folder: $MENAGERIE_CACHE, else $XDG_CACHE_HOME/menagerie, else ~/.cache/menagerie."""
    if own := os.environ.get("MENAGERIE_CACHE"):
        return Path(own).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "menagerie"


@contextmanager
def locked(path: Path, on_wait: Callable[[], None] | None = None) -> Iterator[int]:
    """Hold an exclusive lock on `path`; on_wait is called once when another process has it.

    Yields the lock's file descriptor: a child process that inherits it keeps the lock until it ends,
    even when its parent was killed. The kernel drops the lock with the last holder, so none goes stale.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if on_wait:
                on_wait()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def digest(*parts: str | bytes) -> str:
    """SHA-256 (hex) of the parts, each with its length in front so that no two lists share a digest."""
    sha = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        sha.update(f"{len(data)}:".encode() + data)
    return sha.hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 (hex) of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
