"""Files that a verb writes where an operator says: whole or not at all, and never over something else.

A path that was mistyped may be that of a key or a table of results. So a file is replaced only if it is of the kind
that is written; which is for the caller to tell from how it begins.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from cluster.errors import RefusedError
from cluster.reading import UnreadableError, read_bytes, real

Is = Callable[[bytes], bool]
"""Whether a file is of the kind that is written, by what it holds."""


class ForeignFileError(RefusedError):
    """There is a file of another kind, which was not touched."""

    code = "foreign-file"

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"{path} is not {what}, so it was not touched; name another file, or move that one away first")


def write(path: Path, text: str, what: str, is_ours: Is, *, mode: int = 0o666) -> None:
    """Write a file beside the path, flush it, and put it in its place. A link is followed, an older file's mode is kept.

    what: the kind, with its article. mode: of a new file, before the umask. Raises ForeignFileError, and OSError of the disk.
    """
    path = real(path)
    refuse_foreign(path, what, is_ours)
    replace(path, text.encode("utf-8", "surrogateescape"), mode=mode)


def refuse_foreign(path: Path, what: str, is_ours: Is) -> None:
    """ForeignFileError where something else than nothing, an empty file or one of this kind is at the path."""
    try:
        data = read_bytes(path)
    except UnreadableError as error:
        if error.missing:
            return
        raise ForeignFileError(path, f"{what} that can be read") from None
    if data and not is_ours(data):
        raise ForeignFileError(path, what)


def replace(path: Path, data: bytes, *, mode: int = 0o666) -> None:
    """After a power cut there is the old file or the new one. mode: as for `write`."""
    with contextlib.suppress(OSError):
        mode = stat.S_IMODE(os.stat(path).st_mode)
        os.close(
            os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        )  # whoever may not write to the file may not replace it either
    name = tempfile.mktemp(prefix=f".{path.name}.", dir=path.parent)  # O_EXCL: nobody else's is opened
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def new_folder(path: Path, files: Mapping[str, str]) -> None:
    """Make a folder with these files, whole or not at all. FileExistsError where there is something of its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # One level deeper than its neighbours, so that nobody takes it for one of them.
    with tempfile.TemporaryDirectory(prefix=".new-", dir=path.parent) as hidden:
        made = Path(hidden) / path.name
        made.mkdir()
        for name, text in files.items():
            replace(made / name, text.encode())
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        os.rename(made, path)


def bears(mark: str) -> Is:
    """Whether a file has this in it, as all of its kind do."""
    return lambda data: mark.encode() in data
