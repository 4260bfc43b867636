"""The projects' own release files, in place of a build: ``PROGRAMS=release``.

A release file is used only if its SHA-256 is pinned and matches. A program without a pin is built. The pins are those
that cloud hosts use (cluster/checksums.yaml), plus tools/checksums.yaml.
"""

from __future__ import annotations

import bz2
import errno
import hashlib
import os
import shutil
import tarfile
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Literal, get_args

import yaml

from cluster.errors import FailedError
from tools import cache as store
from tools.manifest import TOOLS, Module

Origin = Literal["source", "release", "bundle"]
ORIGIN = "MENAGERIE_PROGRAMS"
"""Variable: where programs come from. Its last value is stored in the cache; the default is `source`."""
MIRROR = "MENAGERIE_MIRROR"
"""Variable: a server that has the files as ``<address>/<host>/<path>``. Without it, files come from their own hosts."""

_PINS = (TOOLS.parent / "cluster" / "checksums.yaml", TOOLS / "checksums.yaml")
_TIMEOUT_S = 60
_CHUNK = 1 << 20
_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True)
class ReleaseFile:
    """A program in a release file.

    source: host/path. sha256: of the file, in hex. member: the program's path in the archive, "" if the file is the program.
    """

    source: str
    sha256: str
    member: str = ""

    def url(self) -> str:
        mirror = os.environ.get(MIRROR, "").rstrip("/")
        return f"{mirror}/{self.source}" if mirror else f"https://{self.source}"


def origin() -> Origin:
    """Return $MENAGERIE_PROGRAMS or its last value with this cache, so that a lab keeps the programs that it was built with.

    Raises FailedError for any other value.
    """
    record = _record()
    chosen = os.environ.get(ORIGIN, "")
    if not chosen:
        kept = record.read_text() if record.exists() else ""
        return "release" if kept == "release" else "bundle" if kept == "bundle" else "source"
    if chosen not in get_args(Origin):
        raise FailedError(
            f"{ORIGIN}={chosen}: set it to one of {', '.join(get_args(Origin))} (make lab PROGRAMS=release)",
            code="programs",
        )
    keep(chosen)
    return "release" if chosen == "release" else "bundle" if chosen == "bundle" else "source"


def keep(chosen: str) -> None:
    """Let this cache's programs come from there until another origin is chosen."""
    record = _record()
    if not record.exists() or record.read_text() != chosen:
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(chosen)


def _record() -> Path:
    return store.root() / "programs" / "origin"


@cache
def pins() -> Mapping[str, str]:
    """Return host/path -> SHA-256 in hex, for every pinned release file."""
    return {source: digest for file in _PINS for source, digest in (yaml.safe_load(file.read_text()) or {}).items()}


def pinned(module: Module) -> dict[str, ReleaseFile]:
    """Return program -> its pinned release file, for the module's programs."""
    files: dict[str, ReleaseFile] = {}
    for program, place in module.releases.items():
        source, _, member = place.partition("#")
        if digest := pins().get(source):
            files[program] = ReleaseFile(source, digest, member)
    return files


def fetch(targets: Mapping[Path, ReleaseFile], folder: Path, report: Callable[[str], None]) -> None:
    """Write programs from one release file to their targets. `folder`: for temporary files, on the same disk as the targets.

    Raises FailedError, and writes no target, unless the file is complete, as pinned, and contains all programs.
    """
    file = next(iter(targets.values()))
    arrived = folder / Path(file.source).name
    fresh = {target: folder / f"{target.name}.program" for target in targets}
    with _room(folder):
        _download(file, arrived, report)
        for target, place in fresh.items():
            with _opened(arrived, targets[target]) as content, place.open("wb") as into:
                shutil.copyfileobj(content, into, _CHUNK)
            place.chmod(0o755)
    for target, place in fresh.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        place.rename(target)
    arrived.unlink()


@contextmanager
def _room(folder: Path) -> Iterator[None]:
    """Raise FailedError with a way out when a block that writes into the folder fills its disk."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise FailedError(
            f"no space is left on the disk of the cache, {folder}: {error.strerror}.\n"
            "Free some, then run the same command again: files that arrived complete are kept.",
            code="programs",
        ) from error


def _download(file: ReleaseFile, target: Path, report: Callable[[str], None]) -> None:
    url, sha256, received = file.url(), hashlib.sha256(), 0
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as response, target.open("wb") as into:
            size = int(response.headers.get("Content-Length") or 0)
            while chunk := response.read(_CHUNK):
                sha256.update(chunk)
                into.write(chunk)
                received += len(chunk)
                report(f"{received >> 20} of {size >> 20} MiB of {target.name}")
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) in _FULL:
            raise
        raise FailedError(_unavailable(url, error), code="programs") from error
    if received != size and size:
        raise FailedError(_unavailable(url, f"it broke off after {received} of {size} bytes"), code="programs")
    if sha256.hexdigest() != file.sha256:
        target.unlink()
        raise FailedError(
            f"{url} differs from the pinned file: its SHA-256 is {sha256.hexdigest()}, pinned is {file.sha256}.\n"
            f"It was not used. If {MIRROR} names a mirror, that mirror's file differs from the project's.",
            code="programs",
        )


def _unavailable(url: str, why: object) -> str:
    return (
        f"{url} could not be fetched: {why}.\n"
        f"Run the same command again: files that arrived complete are kept. {MIRROR}=http://ADDRESS fetches every file "
        f"from a mirror, as ADDRESS/HOST/PATH; make lab PROGRAMS=source builds the programs instead."
    )


@contextmanager
def _opened(arrived: Path, file: ReleaseFile) -> Iterator[IO[bytes]]:
    """Yield the bytes of one program in a downloaded file. Nothing else of an archive is ever written to disk."""
    if arrived.suffix == ".bz2":
        with bz2.open(arrived) as stream:
            yield stream
    elif not file.member:
        with arrived.open("rb") as stream:
            yield stream
    else:
        with tarfile.open(arrived, "r:gz") as archive:
            entry = next((item for item in archive if item.name == file.member and item.isfile()), None)
            content = archive.extractfile(entry) if entry else None
            if content is None:
                raise FailedError(
                    f"{file.source} has no {file.member}, which tools/programs.toml expects in it", code="programs"
                )
            yield content
