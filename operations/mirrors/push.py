"""Fill a mirror from a bundle: upload only what differs, so that an interrupted run goes on where it stopped.

Next to each file is its checksum, ``<file>.sha256`` as printed by sha256sum, written after the file. A file counts as
there if its checksum and its size are the bundle's.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from obstore.exceptions import BaseError

from cluster.bundles import Entry, Kind
from cluster.errors import FailedError
from operations.bundles.crane import CraneError
from operations.bundles.opened import OpenBundle
from operations.bundles.stage import Stage
from operations.mirrors.cached import CacheTarget
from operations.mirrors.registry import RegistryTarget
from operations.mirrors.targets import Target, TargetKind

if TYPE_CHECKING:
    from obstore.store import ObjectStore

Say = Callable[[str], None]
_AT_ONCE = 4
"""Parts of one file that are uploaded at the same time."""


class MirrorError(FailedError):
    """A mirror doesn't answer, or refuses; the text is the mirror's. What it took stays."""

    code = "mirror"


class Taker(Protocol):
    """A mirror."""

    def has(self, entry: Entry, bundle: OpenBundle) -> bool:
        """Return whether the entry is there, as the bundle has it."""

    def take(self, entry: Entry, bundle: OpenBundle, work: Path) -> None:
        """Take an entry. work: an empty folder, which is removed afterwards."""


_TAKES = {
    TargetKind.FILES: {Kind.PROGRAM, Kind.PLUGIN, Kind.MANIFEST, Kind.DEBIAN},
    TargetKind.IMAGES: {Kind.IMAGE},
    TargetKind.CACHE: {Kind.PLUGIN, Kind.BUILT, Kind.SYSTEM},
}


@dataclass(frozen=True)
class Pushed:
    """What a push did, or would do. same: entries that were there already; other: those of another kind of mirror."""

    uploaded: tuple[Entry, ...]
    same: tuple[Entry, ...]
    other: tuple[Entry, ...]


def push(bundle: OpenBundle, target: Target, *, dry_run: bool, say: Say = lambda _: None) -> Pushed:
    """Upload what the mirror lacks. Verify every blob before it is uploaded. Raises MirrorError, and BundleError."""
    mine = [entry for entry in bundle.index.entries if entry.kind in _TAKES[target.kind]]
    other = tuple(entry for entry in bundle.index.entries if entry.kind not in _TAKES[target.kind])
    try:
        taker = _taker(target, say)
        uploaded, same = _each(bundle, mine, taker, dry_run=dry_run, say=say)
    except (BaseError, CraneError, OSError) as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise  # the cache's disk is full, or the mirror's folder's
        first = str(error).strip().partition("\n")[0]
        raise MirrorError(f"{target.place} doesn't take {target.kind}: {first}") from None
    return Pushed(uploaded, same, other)


def _taker(target: Target, say: Say) -> Taker:
    if target.kind is TargetKind.CACHE:
        return CacheTarget()
    if target.kind is TargetKind.IMAGES:
        return RegistryTarget(target.place, say)
    return _Files(target.open(), target)


def _each(
    bundle: OpenBundle, entries: Iterable[Entry], taker: Taker, *, dry_run: bool, say: Say
) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
    uploaded, same = list[Entry](), list[Entry]()
    for entry in entries:
        if taker.has(entry, bundle):
            same.append(entry)
            continue
        uploaded.append(entry)
        size = sum(bundle.index.sizes[blob] for blob in entry.blobs)
        say(f"{'would upload' if dry_run else 'uploading'} {entry.title}, {size >> 20} MiB")
        if not dry_run:
            with Stage().folder_for_work() as work:
                taker.take(entry, bundle, work)
    return tuple(uploaded), tuple(same)


class _Files:
    """A folder or a bucket."""

    def __init__(self, store: ObjectStore, target: Target) -> None:
        self._store = store
        self._prefix = f"{target.prefix}/" if target.prefix else ""

    def _key(self, entry: Entry) -> str:
        return f"{self._prefix}{entry.source}"

    def has(self, entry: Entry, bundle: OpenBundle) -> bool:
        """Return whether the file is there, by its size and the checksum next to it."""
        try:
            written = bytes(self._store.get(f"{self._key(entry)}.sha256").bytes()).split()
            size = self._store.head(self._key(entry))["size"]
        except FileNotFoundError:
            return False
        return written[:1] == [entry.sha256.encode()] and size == bundle.index.sizes[entry.sha256]

    def take(self, entry: Entry, bundle: OpenBundle, work: Path) -> None:
        """Upload a file, then its checksum. The former checksum is removed first: it isn't that of half a file."""
        key = self._key(entry)
        bundle.extract(entry.sha256, work / "file")
        with contextlib.suppress(FileNotFoundError):
            self._store.delete(f"{key}.sha256")
        self._store.put(key, work / "file", max_concurrency=_AT_ONCE)
        name = entry.source.rpartition("/")[2]
        self._store.put(f"{key}.sha256", f"{entry.sha256}  {name}\n".encode())
