"""Files that an operator names, read within bounds: ordinary files alone, and no more of them than makes sense.

A path may lead to a device without an end, to a pipe that nobody writes to, or around in a circle. What can't be
read is an `UnreadableError`, which never holds a word of the file.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from cluster.errors import RefusedError

MOST_BYTES = 32 * 2**20
"""Of a file. Hosts files are the largest: 7,500 machines with nine links each take 6 MB."""

MISSING = "there is no such file"

# Opening a device may already do something; a pipe would wait for a writer without O_NONBLOCK.
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class UnreadableError(RefusedError):
    """A file that can't be read; the text says which one and why.

    reason: the same without the file. line: where the trouble is, 0 where it is the whole file.
    """

    code = "unreadable"

    def __init__(self, path: Path, reason: str, *, missing: bool = False, line: int = 0) -> None:
        self.reason, self.missing, self.line = reason, missing, line
        super().__init__(f"{path} can't be read: {reason}")


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """What an ordinary file of at most `most` bytes holds. Raises UnreadableError."""
    try:
        _refuse(path, os.stat(path), most)
        descriptor = os.open(path, _FLAGS)
        with os.fdopen(descriptor, "rb") as file:
            _refuse(path, os.fstat(descriptor), most)
            data = file.read(most + 1)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    if len(data) > most:  # the kernel says 0 of its own files, and others grow
        raise UnreadableError(path, _too_large(most))
    return data


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """The same as text in UTF-8, without a byte order mark. Raises UnreadableError."""
    try:
        return read_bytes(path, most).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UnreadableError(path, f"byte {error.start + 1} isn't UTF-8", line=line) from None


def real(path: Path | str) -> Path:
    """The path without symbolic links, as far as they lead; `Path.resolve` fails for some."""
    try:
        return Path(os.path.realpath(path))
    except ValueError:
        return Path(path)


def _refuse(path: Path, found: os.stat_result, most: int) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise UnreadableError(path, f"it is {_kind(found.st_mode)}, not an ordinary file")
    if found.st_size > most:
        raise UnreadableError(path, f"it has {found.st_size:,} bytes; {_too_large(most)}")


def _too_large(most: int) -> str:
    return f"the most that is read is {most:,} bytes"


def _kind(mode: int) -> str:
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")


def _unreadable(path: Path, error: OSError | ValueError) -> UnreadableError:
    if isinstance(error, FileNotFoundError):
        return UnreadableError(path, MISSING, missing=True)
    if isinstance(error, OSError):
        told = {errno.ELOOP: "its symbolic links lead in a circle", errno.ENAMETOOLONG: "its path is too long"}
        return UnreadableError(path, told.get(error.errno or 0, error.strerror or "it can't be opened"))
    return UnreadableError(path, "no path holds a NUL character")
