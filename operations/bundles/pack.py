"""Write a bundle: a tar with the signed list first, so that a reader knows what must follow."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, cast

import minisign

from cluster.bundles import BLOBS, INDEX, MATERIALS, SIGNATURE, Entry, Index
from cluster.writing import ForeignFileError, naming
from operations.bundles.materials import materials
from operations.bundles.signing import sign
from operations.bundles.stage import Stage
from tools import cache
from tools.oci import tar

_START = f"{INDEX}\0".encode()
"""First bytes of a bundle: the name of the tar's first member."""


def index_of(entries: Sequence[Entry], stage: Stage) -> tuple[Index, bytes]:
    """Return the list of a bundle with these entries, and its bill of materials."""
    blobs = sorted({blob for entry in entries for blob in entry.blobs})
    bill = materials(entries)
    sizes = {blob: stage.path(blob).stat().st_size for blob in blobs}
    return Index(entries=tuple(entries), sizes=sizes, materials=cache.bytes_digest(bill)), bill


def refuse_foreign(path: Path) -> None:
    """Raise ForeignFileError if there is something else than a bundle."""
    if not os.path.lexists(path):
        return
    start = b""
    if path.is_file():
        with path.open("rb") as file:
            start = file.read(len(_START))
    if start != _START:
        raise ForeignFileError(path, "a bundle")


def write(path: Path, index: Index, bill: bytes, stage: Stage, key: minisign.SecretKey) -> None:
    """Write a bundle, completely or not at all. The same content and key give the same bytes."""
    listed = index.written()
    clusters = sorted({cluster for entry in index.entries for cluster in entry.clusters})
    signature = sign(listed, key, f"{INDEX} of {' '.join(clusters)}")
    fresh = path.with_name(f".{path.name}.new")
    try:
        with naming(path), fresh.open("wb") as file:
            tar.write(cast("IO[bytes]", file), _members(index, listed, signature, bill, stage))
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    except BaseException:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise


def _members(index: Index, listed: bytes, signature: bytes, bill: bytes, stage: Stage) -> Iterator[tar.Entry]:
    yield tar.Entry(INDEX, listed, 0o644)
    yield tar.Entry(SIGNATURE, signature, 0o644)
    yield tar.Entry(MATERIALS, bill, 0o644)
    for blob in sorted(index.sizes):
        yield tar.Entry(f"{BLOBS}{blob}", stage.path(blob), 0o644)
