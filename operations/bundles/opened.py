"""Read a bundle: the signature first, then only what the signed list names, and each file's checksum while it is read.

No name in the tar is ever used as a path.
"""

from __future__ import annotations

import hashlib
import os
import re
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from cluster.bundles import BLOBS, INDEX, MATERIALS, SIGNATURE, BundleError, Index, parse
from cluster.writing import naming
from operations.bundles.signing import PublicKeys
from operations.bundles.stage import CHUNK

_MOST_LIST, _MOST_SIGNATURE = 64 << 20, 1 << 16
_BLOB = re.compile(rf"{BLOBS}([0-9a-f]{{64}})")

Say = Callable[[str], None]


@dataclass(frozen=True)
class OpenBundle:
    """A bundle whose list is verified, and open as long as its block runs. places: SHA-256 -> offset and size in the file."""

    path: Path
    index: Index
    file: IO[bytes]
    places: dict[str, tuple[int, int]] = field(repr=False)

    def chunks(self, sha256: str) -> Iterator[bytes]:
        """Yield a blob's content. Raises BundleError at its end, with the names of its entries, if it isn't as listed."""
        digest, (at, left) = hashlib.sha256(), self.places[sha256]
        while left:
            chunk = os.pread(self.file.fileno(), min(CHUNK, left), at)
            if not chunk:
                raise BundleError(f"{self.path} ends within {self._named(sha256)}")
            digest.update(chunk)
            left, at = left - len(chunk), at + len(chunk)
            yield chunk
        if digest.hexdigest() != sha256:
            raise BundleError(
                f"{self.path} is damaged or was changed: {self._named(sha256)} has SHA-256 {digest.hexdigest()}, but the signed "
                f"list has {sha256}. Nothing of it was used; get the bundle again"
            )

    def read(self, sha256: str) -> bytes:
        """Return a small blob, verified. Raises BundleError."""
        return b"".join(self.chunks(sha256))

    def extract(self, sha256: str, target: Path) -> None:
        """Write a blob to a new file. Raises BundleError and leaves no file, unless it is as listed."""
        try:
            with naming(target), target.open("wb") as file:
                for chunk in self.chunks(sha256):
                    file.write(chunk)
        except BaseException:
            target.unlink(missing_ok=True)
            raise

    def verify(self, say: Say = lambda _: None) -> None:
        """Read everything. Raises BundleError that names the first entry that isn't as listed."""
        done, total = 0, self.index.size
        for blob in (self.index.materials, *sorted(self.index.sizes)):
            for chunk in self.chunks(blob):
                done += len(chunk)
                say(f"verified {done >> 20} of {total >> 20} MiB")

    def _named(self, sha256: str) -> str:
        return "its bill of materials" if sha256 == self.index.materials else self.index.title_of(sha256)


@contextmanager
def opened(path: Path, keys: PublicKeys) -> Iterator[OpenBundle]:
    """Open a bundle and verify its list's signature. Raises BundleError if it isn't complete and signed by one of the keys."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise BundleError(f"{path} can't be read: {error.strerror}") from None
    with file:
        yield _opened(path, file, keys)


def _opened(path: Path, file: IO[bytes], keys: PublicKeys) -> OpenBundle:
    try:
        # Members are found by their headers; nothing is unpacked, and links and the like are no blobs.
        with tarfile.open(fileobj=file, mode="r:") as archive:
            members = archive.getmembers()
            listed = _small(archive, members, 0, INDEX, _MOST_LIST, path)
            signature = _small(archive, members, 1, SIGNATURE, _MOST_SIGNATURE, path)
    except (tarfile.TarError, EOFError, ValueError, OverflowError) as error:
        raise BundleError(f"{path} is no bundle: {error}") from None
    keys.verify(listed, signature, str(path))
    index = parse(listed, str(path))
    return OpenBundle(path, index, file, _places(path, index, members[2:]))


def _small(
    archive: tarfile.TarFile, members: list[tarfile.TarInfo], position: int, name: str, most: int, path: Path
) -> bytes:
    member = members[position] if len(members) > position else None
    if member is None or member.name != name or not member.isreg() or member.size > most:
        raise BundleError(f"{path} is no bundle: it doesn't start with {INDEX} and its signature")
    content = archive.extractfile(member)
    assert content is not None
    return content.read()


def _places(path: Path, index: Index, members: list[tarfile.TarInfo]) -> dict[str, tuple[int, int]]:
    """Return where the blobs are. Raises BundleError for a member that isn't listed, and for one that is missing."""
    places: dict[str, tuple[int, int]] = {}
    for member in members:
        match = _BLOB.fullmatch(member.name)
        is_bill = member.name == MATERIALS
        blob = index.materials if is_bill else match[1] if match else ""
        known = is_bill or index.sizes.get(blob) == member.size
        if not member.isreg() or member.issparse() or not known or blob in places:
            raise BundleError(
                f"{path} has a member that its signed list doesn't have so: {member.name!r}, {member.size} bytes"
            )
        places[blob] = member.offset_data, member.size
    missing = [index.title_of(blob) for blob in sorted(index.sizes.keys() - places.keys())]
    missing += ["its bill of materials"] if index.materials not in places else []
    if missing:
        raise BundleError(f"{path} isn't complete: it lacks {'; '.join(dict.fromkeys(missing))}")
    return places
