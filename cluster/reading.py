"""Read files that an operator names, within limits: only regular files up to a sensible size.

A path may lead to an endless device, to a pipe without a writer, or in a circle. An `UnreadableError` never contains
any of the file's content.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from cluster.errors import RefusedError

MOST_BYTES = 32 * 2**20
"""Size of a file. Hosts files are the largest: 7,500 machines with nine links each take 6 MB."""

MISSING = "there is no such file"

# Just opening a device may have an effect; without O_NONBLOCK a pipe would wait for a writer.
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class UnreadableError(RefusedError):
    """A file can't be read; the text says which one and why.

    reason: the same without the file. line: the line with the error, 0 for the whole file.
    """

    code = "unreadable"

    def __init__(self, path: Path, reason: str, *, missing: bool = False, line: int = 0) -> None:
        self.reason, self.missing, self.line = reason, missing, line
        super().__init__(f"{path} can't be read: {reason}")


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """Return the content of a regular file of at most `most` bytes. Raises UnreadableError."""
    try:
        _refuse(path, os.stat(path), most)
        descriptor = os.open(path, _FLAGS)
        with os.fdopen(descriptor, "rb") as file:
            _refuse(path, os.fstat(descriptor), most)
            data = file.read(most + 1)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    if len(data) > most:  # files of the kernel have size 0, and others can grow
        raise UnreadableError(path, _too_large(most))
    return data


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """Return the content as UTF-8 text without byte order mark. Raises UnreadableError."""
    try:
        return read_bytes(path, most).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UnreadableError(path, f"byte {error.start + 1} isn't UTF-8", line=line) from None


def real(path: Path | str) -> Path:
    """Return the path without symbolic links, as far as they can be resolved. `Path.resolve` fails for some."""
    try:
        return Path(os.path.realpath(path))
    except ValueError:
        return Path(path)


def _refuse(path: Path, status: os.stat_result, most: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableError(path, f"it is {_kind(status.st_mode)}, not a regular file")
    if status.st_size > most:
        raise UnreadableError(path, f"it has {status.st_size:,} bytes; {_too_large(most)}")


def _too_large(most: int) -> str:
    return f"the limit is {most:,} bytes"


def _kind(mode: int) -> str:
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")


def _unreadable(path: Path, error: OSError | ValueError) -> UnreadableError:
    if isinstance(error, FileNotFoundError):
        return UnreadableError(path, MISSING, missing=True)
    if isinstance(error, OSError):
        reasons = {errno.ELOOP: "its symbolic links form a loop", errno.ENAMETOOLONG: "its path is too long"}
        return UnreadableError(path, reasons.get(error.errno or 0, error.strerror or "it can't be opened"))
    return UnreadableError(path, "a path can't contain a NUL character")
