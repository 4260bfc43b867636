"""Tar archives whose bytes depend only on their content: owned by root, dated 1970, in the given order."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterable, Iterator
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


def entries(root: Path) -> Iterator[Entry]:
    """Yield everything below `root` in the order of a layer: by name, each folder before its content."""
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            yield Entry(name, target=os.readlink(path))
        elif path.is_dir():
            yield Entry(name)
        else:
            yield Entry(name, path, 0o755 if path.stat().st_mode & 0o100 else 0o644)


def write(stream: IO[bytes], entries: Iterable[Entry]) -> None:
    """Write the entries as an uncompressed tar. Raises OSError when a file cannot be read."""
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
