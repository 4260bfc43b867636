"""The cache for built and downloaded files, and the lock that lets only one process write a part of it."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def root() -> Path:
    """Return the cache folder: $MENAGERIE_CACHE, else $XDG_CACHE_HOME/menagerie, else ~/.cache/menagerie."""
    if own := os.environ.get("MENAGERIE_CACHE"):
        return Path(own).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "menagerie"


@contextmanager
def locked(path: Path, on_wait: Callable[[], None] | None = None) -> Iterator[int]:
    """Hold an exclusive lock on `path`; call on_wait once if another process holds it.

    Yields the lock's file descriptor. A child process that inherits it keeps the lock until it exits, even when its parent
    is killed. The kernel releases the lock with its last holder, so it never goes stale.
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
    """Return the SHA-256 (hex) of the parts, each prefixed with its length so that no two lists share a digest."""
    sha = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        sha.update(f"{len(data)}:".encode() + data)
    return sha.hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 (hex) of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
