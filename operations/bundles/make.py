"""Make a bundle: collect what clusters need, verify each file, write the bundle, and each cluster's lock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import minisign

from cluster import writing
from cluster.bundles import Entry, Index, Kind, Known
from cluster.locked import MARK, Lock, text
from cluster.sources import upstream
from operations.bundles import pack
from operations.bundles.images import Content, Registry, content
from operations.bundles.needs import NeededArtefact
from operations.bundles.places import Place
from operations.bundles.stage import ArtefactError, Stage
from operations.bundles.upstream import checksum

Say = Callable[[str], None]


@dataclass(frozen=True)
class Sources:
    """Where files and images come from.

    fetch: whether projects' lists of checksums are read there too. own: whether they may be own builds, with other checksums
    than upstream's.
    """

    files: Place
    images: Registry
    fetch: bool = False
    own: bool = False


def collect(
    things: Sequence[NeededArtefact], sources: Sources, stage: Stage, say: Say = lambda _: None
) -> tuple[Entry, ...]:
    """Bring everything into the stage, and return the entries. What an earlier run brought isn't brought again.

    Raises ArtefactError with everything that can't be had.
    """
    entries, failed = [], []
    for number, thing in enumerate(things, 1):
        say(f"[{number}/{len(things)}] {thing.title}")
        try:
            entries.append(_entry(thing, sources, stage))
        except ArtefactError as error:
            failed.append(str(error))
    if failed:
        raise ArtefactError("\n  ".join(["these can't be had; no bundle was written:", *failed]))
    return tuple(entries)


def _entry(thing: NeededArtefact, sources: Sources, stage: Stage) -> Entry:
    staged = _image(thing, sources, stage) if thing.kind is Kind.IMAGE else _file(thing, sources, stage)
    sha256, known, parts = staged
    if known is Known.BUILD and sha256 == thing.pin:
        known = thing.known
    pinned = replace(thing, pin=sha256, known=known)
    return pinned.entry(parts.media, parts.needs) if parts else pinned.entry()


_Staged = tuple[str, Known, Content | None]


def _file(thing: NeededArtefact, sources: Sources, stage: Stage) -> _Staged:
    if sources.own:
        thing = _own(thing)
    if sources.fetch and thing.known is not Known.BUILD:
        thing = _compared(thing, checksum(sources.files, thing.source))
    if not stage.has(thing.pin):
        where = sources.files.where(thing.source)
        return stage.take(sources.files.chunks(thing.source), thing.title, where, thing.pin), thing.known, None
    return thing.pin, thing.known, None


def _image(thing: NeededArtefact, sources: Sources, stage: Stage) -> _Staged:
    pin = sources.images.digest(thing.source) if sources.own or not thing.pin else thing.pin
    known = Known.BUILD if sources.own else thing.known
    if sources.fetch and known in (Known.PLACE, Known.SPEC):
        known = Known.UPSTREAM  # its registry has it by this digest
    if stage.has(pin):
        try:
            parts = content(stage, pin)
            if all(map(stage.has, parts.needs)):
                return pin, known, parts
        except ArtefactError:
            pass  # an earlier run was interrupted
    return pin, known, sources.images.take(thing.source, pin, stage)


def _own(thing: NeededArtefact) -> NeededArtefact:
    return replace(thing, pin="", known=Known.BUILD)


def _compared(thing: NeededArtefact, published: str) -> NeededArtefact:
    if thing.pin and thing.pin != published:
        whose = {Known.PUBLISHED: "this checkout has", Known.SPEC: "the spec or its lock has"}[thing.known]
        raise ArtefactError(
            f"{thing.title}: the project publishes SHA-256 {published}, but {whose} {thing.pin}; trust neither until you know why "
            "they differ"
        )
    return replace(thing, pin=published, known=Known.PUBLISHED if thing.known is Known.PUBLISHED else Known.UPSTREAM)


def lock_of(index: Index, cluster: str) -> Lock:
    """Return the checksums for a cluster's lock, without Debian's: apt has them from signed lists.

    Own builds are those that differ from what upstream publishes, or are declared so.
    """
    upstreams, own_builds = dict[str, str](), dict[str, str]()
    for entry in (each for each in index.of(cluster) if each.kind is not Kind.DEBIAN):
        published = upstream().get(entry.source, "" if entry.known is Known.BUILD else entry.sha256)
        (upstreams if published == entry.sha256 else own_builds)[entry.source] = entry.sha256
    return Lock(sha256=upstreams, own_builds=own_builds)


def write(path: Path, entries: Sequence[Entry], stage: Stage, key: minisign.SecretKey, locks: dict[str, Path]) -> Index:
    """Write the bundle and then the locks: cluster -> its lock file. Return the bundle's list.

    Raises ForeignFileError for a file of another kind at one of the paths; nothing is written then.
    """
    pack.refuse_foreign(path)
    for lock in locks.values():
        writing.refuse_foreign(lock, "a lock of artefacts", writing.bears(MARK))
    index, bill = pack.index_of(entries, stage)
    pack.write(path, index, bill, stage, key)
    for cluster, lock in locks.items():
        writing.write(lock, text(lock_of(index, cluster)), "a lock of artefacts", writing.bears(MARK))
    return index
