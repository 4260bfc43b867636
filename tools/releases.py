"""The projects' own release files, in place of a build: ``PROGRAMS=release``.

A file is taken where its SHA-256 is pinned, and only if that is what arrives. Of what nobody's list pins, the program is
built as ever. The pins are those that hosts of a cloud use (cluster/checksums.yaml) and tools/checksums.yaml.
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

Origin = Literal["source", "release"]
ORIGIN = "MENAGERIE_PROGRAMS"
"""Variable: where programs come from. What it says is remembered with the cache; `source` is the default."""
MIRROR = "MENAGERIE_MIRROR"
"""Variable: a server that has the files as ``<address>/<host>/<path>``. Without it, each is asked for at its own host."""

_PINS = (TOOLS.parent / "cluster" / "checksums.yaml", TOOLS / "checksums.yaml")
_TIMEOUT_S = 60
_CHUNK = 1 << 20
_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True)
class ReleaseFile:
    """A program in it. source: host/path. sha256: of the file, in hex. member: the program's place in the archive, "" where
    the file is the program."""

    source: str
    sha256: str
    member: str = ""

    def url(self) -> str:
        mirror = os.environ.get(MIRROR, "").rstrip("/")
        return f"{mirror}/{self.source}" if mirror else f"https://{self.source}"


def origin() -> Origin:
    """What $MENAGERIE_PROGRAMS says, else what it said last with this cache: a lab keeps the programs that it was made of.

    FailedError for any other word."""
    place = store.root() / "programs" / "origin"
    told = os.environ.get(ORIGIN, "")
    if not told:
        return "release" if place.exists() and place.read_text() == "release" else "source"
    if told not in get_args(Origin):
        raise FailedError(
            f"{ORIGIN}={told}: it is one of {', '.join(get_args(Origin))} (make lab PROGRAMS=release)", code="programs"
        )
    if not place.exists() or place.read_text() != told:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(told)
    return "release" if told == "release" else "source"


@cache
def pins() -> Mapping[str, str]:
    """host/path -> SHA-256 in hex, of every release file that is pinned."""
    return {source: digest for each in _PINS for source, digest in (yaml.safe_load(each.read_text()) or {}).items()}


def pinned(module: Module) -> dict[str, ReleaseFile]:
    """Program -> the pinned file that holds it, of the module's programs."""
    found: dict[str, ReleaseFile] = {}
    for program, place in module.releases.items():
        source, _, member = place.partition("#")
        if digest := pins().get(source):
            found[program] = ReleaseFile(source, digest, member)
    return found


def fetch(targets: Mapping[Path, ReleaseFile], folder: Path, tell: Callable[[str], None]) -> None:
    """Put programs of one release file at their targets. `folder`: for what is on its way, on the same disk as these.

    FailedError, with nothing put anywhere, where the file is not had whole, as pinned, and with all that it shall hold."""
    file = next(iter(targets.values()))
    arrived = folder / Path(file.source).name
    fresh = {target: folder / f"{target.name}.program" for target in targets}
    with _room(folder):
        _download(file, arrived, tell)
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
    """For what writes there: FailedError with the way out when the disk is full."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise FailedError(
            f"no space is left on the disk of the cache, {folder}: {error.strerror}.\n"
            "Free some, then run the same again: what arrived whole is kept.",
            code="programs",
        ) from error


def _download(file: ReleaseFile, target: Path, tell: Callable[[str], None]) -> None:
    url, sha256, had = file.url(), hashlib.sha256(), 0
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer, target.open("wb") as into:
            size = int(answer.headers.get("Content-Length") or 0)
            while chunk := answer.read(_CHUNK):
                sha256.update(chunk)
                into.write(chunk)
                had += len(chunk)
                tell(f"{had >> 20} of {size >> 20} MiB of {target.name}")
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) in _FULL:
            raise
        raise FailedError(_not_had(url, error), code="programs") from error
    if had != size and size:
        raise FailedError(_not_had(url, f"it ended after {had} of {size} bytes"), code="programs")
    if sha256.hexdigest() != file.sha256:
        target.unlink()
        raise FailedError(
            f"{url} is not the file that is pinned: its SHA-256 is {sha256.hexdigest()}, pinned is {file.sha256}.\n"
            f"Nothing of it was used. If {MIRROR} names a mirror, it serves another file than the project does.",
            code="programs",
        )


def _not_had(url: str, why: object) -> str:
    return (
        f"{url} could not be had: {why}.\n"
        f"Run the same again: what arrived whole is kept. {MIRROR}=http://ADDRESS takes every file from a mirror, as "
        f"ADDRESS/HOST/PATH; make lab PROGRAMS=source builds the programs instead."
    )


@contextmanager
def _opened(arrived: Path, file: ReleaseFile) -> Iterator[IO[bytes]]:
    """The bytes of one program of a file that arrived. Nothing else of an archive is ever written anywhere."""
    if arrived.suffix == ".bz2":
        with bz2.open(arrived) as stream:
            yield stream
    elif not file.member:
        with arrived.open("rb") as stream:
            yield stream
    else:
        with tarfile.open(arrived, "r:gz") as archive:
            held = next((each for each in archive if each.name == file.member and each.isfile()), None)
            content = archive.extractfile(held) if held else None
            if content is None:
                raise FailedError(
                    f"{file.source} holds no {file.member}, which tools/programs.toml takes out of it", code="programs"
                )
            yield content
