"""Collect a part of Debian's archive: its signed lists as they are, and those packages that machines install.

apt on hosts, and Debian's installer, verify the lists with Debian's own keys and each package with the lists, so nothing
here is signed again. Packages are chosen twice: from the main suite alone, which the installer knows, and with all updates.
"""

from __future__ import annotations

import gzip
import lzma
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from cluster.bundles import Entry, Kind, Known
from operations.bundles.debian import archive
from operations.bundles.debian.archive import Package, Suite
from operations.bundles.debian.host_packages import BASE, LOADERS, HostPackages
from operations.bundles.debian.solver import Solver
from operations.bundles.places import Place, text
from operations.bundles.stage import ArtefactError, Stage

Say = Callable[[str], None]
_OPENERS: dict[str, Callable[[bytes], bytes]] = {".xz": lzma.decompress, ".gz": gzip.decompress}
_ALWAYS = ("required", "important")
"""Priorities of what the installer always installs."""


class _File(NamedTuple):
    """A file of the archive. source: host/path; sha256: what a list has for it."""

    source: str
    name: str
    version: str
    sha256: str


def collect(
    things: Sequence[HostPackages], place: Place, stage: Stage, say: Say = lambda _: None, keyring: str = ""
) -> tuple[Entry, ...]:
    """Bring what machines install into the stage. Return entries: packages first, then lists, and signed ones last.

    A mirror that is filled in this order has at all times what its lists name. Raises ArtefactError.
    """
    entries: dict[str, Entry] = {}
    for thing in things:
        say(f"reading the lists of Debian {thing.release}")
        with stage.folder_for_work() as work:
            files = _Archive(thing, place, stage, work, say, keyring).files()
        for file in files:
            clusters = {*thing.clusters, *(entries[file.source].clusters if file.source in entries else ())}
            entries[file.source] = _entry(file, tuple(sorted(clusters)))
    return tuple(entries.values())


def _entry(file: _File, clusters: tuple[str, ...]) -> Entry:
    return Entry(
        kind=Kind.DEBIAN,
        name=file.name,
        version=file.version,
        source=file.source,
        sha256=file.sha256,
        clusters=clusters,
        known=Known.SIGNED,
    )


def _pool(package: Package) -> _File:
    return _File(package.source, package.name, package.version, package.sha256)


class _Archive:
    def __init__(self, thing: HostPackages, place: Place, stage: Stage, work: Path, say: Say, keyring: str) -> None:
        self._thing, self._place, self._stage, self._say = thing, place, stage, say
        self._work, self._keyring = work, keyring
        self._suites = archive.suites(thing.release)
        self._signed: list[_File] = []
        self._lists: list[_File] = []

    def files(self) -> list[_File]:
        """Return all files, each of them in the stage."""
        everything = [package for suite in self._suites for package in self._lists_of(suite)]
        chosen = self._chosen(everything)
        pool_files = dict.fromkeys(_pool(each) for each in everything if each.source in chosen)
        files = [*pool_files, *map(_pool, self._of_installer()), *self._netboot()]
        for number, file in enumerate(files, 1):
            self._say(f"[{number}/{len(files)}] {file.source.rpartition('/')[2]}")
            self._have(file)
        return [*files, *self._lists, *self._signed]

    def _lists_of(self, suite: Suite) -> Iterator[Package]:
        """Fetch a suite's lists; yield the packages that hosts may install from it."""
        signed = self._text(f"{suite.folder}/InRelease")
        release = archive.release_in(signed)
        listed, version = archive.sums(release), archive.version_of(release)
        self._sign(suite, "InRelease", signed, version)
        if suite.is_main:
            self._for_installer(suite, release, version)
        for index in archive.indexes(suite):
            name = archive.smallest(listed, index)
            if name:
                file = _File(f"{suite.folder}/{name}", f"{suite.name}/{name}", version, listed[name])
                self._have(file)
                self._lists.append(file)
                self._show(file)
        yield from self._packages(suite, f"main/binary-{archive.ARCH}/Packages")

    def _for_installer(self, suite: Suite, release: str, version: str) -> None:
        """Add what the installer reads in place of InRelease."""
        text_ = self._text(f"{suite.folder}/Release")
        if text_ != release:
            raise ArtefactError(
                f"{self._place.where(suite.folder)} has a Release that differs from its InRelease; it is perhaps being "
                "updated: run it again"
            )
        self._sign(suite, "Release", text_, version)
        self._sign(suite, "Release.gpg", self._text(f"{suite.folder}/Release.gpg"), version)

    def _chosen(self, everything: Iterable[Package]) -> set[str]:
        base = {each.name for each in everything if each.priority in _ALWAYS}
        chosen = set[str]()
        for number, suites in enumerate((self._suites[:1], self._suites)):
            self._say(f"choosing packages of Debian {self._thing.release}")
            solver = Solver(self._work / f"apt-{number}", self._work / "tree", suites, self._keyring)
            for names in ((*BASE, *LOADERS[0], *self._thing.names), (*BASE, *LOADERS[1])):
                chosen |= solver.chosen(sorted({*base, *names}))
        # Without InRelease apt reads Release and its signature, as the installer does.
        main = self._suites[0]
        (self._work / "tree" / main.folder / "InRelease").unlink()
        Solver(self._work / "apt-installer", self._work / "tree", [main], self._keyring)
        return chosen

    def _of_installer(self) -> Iterator[Package]:
        yield from self._packages(self._suites[0], f"main/debian-installer/binary-{archive.ARCH}/Packages")

    def _netboot(self) -> Iterator[_File]:
        folder = f"{self._suites[0].folder}/{archive.IMAGES}"
        for file in self._lists:
            if file.source == f"{folder}/SHA256SUMS":
                listed = self._stage.path(file.sha256).read_text()
                for name, sha256 in archive.netboot(listed).items():
                    yield _File(f"{folder}/{name}", f"installer/{name.rpartition('/')[2]}", file.version, sha256)

    def _packages(self, suite: Suite, index: str) -> Iterator[Package]:
        for file in self._lists:
            path, form = os.path.splitext(file.source)
            if index in (path.removeprefix(f"{suite.folder}/"), file.source.removeprefix(f"{suite.folder}/")):
                data = self._stage.path(file.sha256).read_bytes()
                yield from archive.packages(_OPENERS.get(form, bytes)(data).decode(), suite.archive)

    def _text(self, source: str) -> str:
        return text(self._place, source)

    def _sign(self, suite: Suite, name: str, content: str, version: str) -> None:
        source = f"{suite.folder}/{name}"
        sha256 = self._stage.take([content.encode()], name, self._place.where(source), "")
        file = _File(source, f"{suite.name}/{name}", version, sha256)
        self._signed.append(file)
        self._show(file)

    def _have(self, file: _File) -> None:
        if not self._stage.has(file.sha256):
            where = self._place.where(file.source)
            self._stage.take(self._place.chunks(file.source), f"{file.name} {file.version}", where, file.sha256)

    def _show(self, file: _File) -> None:
        """Let apt see a list."""
        path = self._work / "tree" / file.source
        path.parent.mkdir(parents=True, exist_ok=True)
        os.link(self._stage.path(file.sha256), path)
