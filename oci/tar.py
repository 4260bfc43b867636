"""Tar archives whose bytes depend on their content alone: owned by root, dated 1970, in the order given."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO


@dataclass(frozen=True)
class Entry:
    """One member: a regular file with `content` (a file to copy, or the bytes), a folder, or a link to `target`."""

    name: str
    content: Path | bytes | None = None
    mode: int = 0o755
    target: str | None = None


def write(stream: IO[bytes], entries: Iterable[Entry]) -> None:
    """Write the entries as an uncompressed tar. OSError when a file cannot be read."""
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for entry in entries:
            info = tarfile.TarInfo(entry.name)
            info.mode = entry.mode
            if entry.target is not None:
                info.type, info.linkname = tarfile.SYMTYPE, entry.target
                tar.addfile(info)
            elif entry.content is None:
                info.type = tarfile.DIRTYPE
                tar.addfile(info)
            elif isinstance(entry.content, bytes):
                info.size = len(entry.content)
                tar.addfile(info, io.BytesIO(entry.content))
            else:
                with entry.content.open("rb") as file:
                    info.size = entry.content.stat().st_size
                    tar.addfile(info, file)
