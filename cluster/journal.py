"""Records as lines of JSON: append-only files that survive a crash, because each line is appended in one write.

Reading skips lines that are cut off or not ours. It refuses lines of a newer format, before anything is written. An
additional field isn't a newer format (`cluster.shared`).
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from cluster import shared
from cluster.writing import naming

FORMAT = 1
T = TypeVar("T")


class Lines:
    """A file of JSON lines. Neither the file nor its folder need exist. Only its owner may read it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, parse: Callable[[dict[str, Any]], T]) -> Iterator[T]:
        """Yield the result of `parse` for each line, oldest first. Skips lines for which it raises an error.

        Errors: raises NewerDataError.
        """
        try:
            lines = self._path.read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return
        for text in lines:
            if (entry := parsed(text, f"a line of {self._path}", parse)) is not None:
                yield entry

    def append(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """Append entries in one write, so that other processes only see whole lines (open(2), O_APPEND)."""
        text = "".join(map(line, entries)).encode()
        self._make_folder()
        descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            was_cut = size and os.pread(descriptor, 1, size - 1) != b"\n"
            data = b"\n" + text if was_cut else text
            with naming(self._path):
                if os.write(descriptor, data) < len(data):  # the disk has room for the beginning only
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(descriptor)

    def replace(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """Replace the file by write, flush and rename: after a power cut there is either the old file or the new one."""
        self._make_folder()
        temporary = self._path.with_suffix(".new")
        temporary.touch(mode=0o600)
        with naming(self._path), temporary.open("w") as file:
            file.writelines(map(line, entries))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)

    def _make_folder(self) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)


def parsed(text: str, what: str, parse: Callable[[dict[str, Any]], T]) -> T | None:
    """Return the result of `parse` for a line; None if the line is cut off or not ours. what: its name in messages.

    Errors: raises NewerDataError.
    """
    try:
        entry = json.loads(text)
        shared.check(what, entry.pop("v"), FORMAT)
        return parse(entry)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def line(entry: Mapping[str, Any]) -> str:
    return json.dumps({"v": FORMAT, **entry}, separators=(",", ":")) + "\n"
