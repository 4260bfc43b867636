"""Files that a run can lose no word of, however it ends: lines of JSON, each appended in one write.

A line that was cut, and one that is none of ours, tells nothing and is left out when the file is read. One of a newer format is
refused before anything is written. A field more is no newer format (`cluster.shared`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from cluster import shared

FORMAT = 1
T = TypeVar("T")


class Lines:
    """path: the file; it need not exist, nor its folder. Only its owner may read it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, parse: Callable[[dict[str, Any]], T]) -> Iterator[T]:
        """What `parse` makes of each line, oldest first. Lines that it raises an error for tell nothing either.

        NewerDataError.
        """
        try:
            lines = self._path.read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return
        for line in lines:
            try:
                entry = json.loads(line)
                shared.check(f"a line of {self._path}", entry.pop("v"), FORMAT)
                yield parse(entry)
            except (ValueError, KeyError, TypeError, AttributeError):
                continue

    def append(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """One write, so that another process sees whole lines only (open(2), O_APPEND)."""
        text = "".join(map(_line, entries)).encode()
        self._make_folder()
        descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            was_cut = size and os.pread(descriptor, 1, size - 1) != b"\n"
            os.write(descriptor, b"\n" + text if was_cut else text)
        finally:
            os.close(descriptor)

    def replace(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """Write beside, flush, rename: after a power cut there is the old file or the new one."""
        self._make_folder()
        beside = self._path.with_suffix(".new")
        beside.touch(mode=0o600)
        with beside.open("w") as file:
            file.writelines(map(_line, entries))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self._path)

    def _make_folder(self) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)


def _line(entry: Mapping[str, Any]) -> str:
    return json.dumps({"v": FORMAT, **entry}, separators=(",", ":")) + "\n"
