"""The cache for built and downloaded files, and digests that name its parts. One process writes a part: `cluster.locks`."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def root() -> Path:
    """Return the cache folder: $MENAGERIE_CACHE, else $XDG_CACHE_HOME/menagerie, else ~/.cache/menagerie."""
    if own := os.environ.get("MENAGERIE_CACHE"):
        return Path(own).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "menagerie"


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


def bytes_digest(data: bytes) -> str:
    """Return the SHA-256 (hex) of bytes."""
    return hashlib.sha256(data).hexdigest()
