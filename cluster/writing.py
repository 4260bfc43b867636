"""Write files at paths that an operator gives: completely or not at all, and never over a file of another kind.

A mistyped path may be that of a key or a table of results. So a file is replaced only if it is of the kind
to be written, which the caller decides from its content.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from cluster.errors import RefusedError
from cluster.reading import UnreadableError, read_bytes, real

Is = Callable[[bytes], bool]
"""Decides from a file's content whether it is of the kind to be written."""


class ForeignFileError(RefusedError):
    """There is a file of another kind, which wasn't changed."""

    code = "foreign-file"

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"{path} isn't {what}, so it wasn't changed; name another file, or move this one away first")


def write(path: Path, text: str, what: str, is_ours: Is, *, mode: int = 0o666) -> None:
    """Write a temporary file, flush it, and rename it to the path. Follows a link, and keeps an older file's mode.

    what: the kind of file, with its article. mode: of a new file, before the umask.
    Errors: raises ForeignFileError, or OSError of the disk.
    """
    path = real(path)
    refuse_foreign(path, what, is_ours)
    replace(path, text.encode("utf-8", "surrogateescape"), mode=mode)


def refuse_foreign(path: Path, what: str, is_ours: Is) -> None:
    """Raise ForeignFileError unless the path is missing, an empty file, or a file of this kind."""
    try:
        data = read_bytes(path)
    except UnreadableError as error:
        if error.missing:
            return
        raise ForeignFileError(path, f"{what} that can be read") from None
    if data and not is_ours(data):
        raise ForeignFileError(path, what)


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let an OSError of the block name the file. A failed write does not, as on a full disk; a failed open does."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def replace(path: Path, data: bytes, *, mode: int = 0o666) -> None:
    """Replace a file atomically: after a power cut there is either the old file or the new one. mode: as for `write`."""
    with contextlib.suppress(OSError):
        mode = stat.S_IMODE(os.stat(path).st_mode)
        os.close(
            os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        )  # without permission to write to the file, it must not be replaced either
    name = tempfile.mktemp(prefix=f".{path.name}.", dir=path.parent)  # O_EXCL: never opens somebody else's file
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with naming(path), os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def new_folder(path: Path, files: Mapping[str, str]) -> None:
    """Create a folder with these files, completely or not at all. Raises FileExistsError if the name is taken."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # One level deeper than its neighbours, so that it can't be taken for one of them.
    with tempfile.TemporaryDirectory(prefix=".new-", dir=path.parent) as hidden:
        folder = Path(hidden) / path.name
        folder.mkdir()
        for name, text in files.items():
            replace(folder / name, text.encode())
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        os.rename(folder, path)


def bears(mark: str) -> Is:
    """Return a check whether a file contains the mark of its kind."""
    return lambda data: mark.encode() in data
