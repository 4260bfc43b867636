"""Files on their way into a bundle: in the cache, named by their SHA-256, so that an interrupted run goes on."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster.errors import FailedError
from cluster.writing import naming
from tools import cache

CHUNK = 1 << 20


class ArtefactError(FailedError):
    """A file can't be had, or isn't the one that was expected. No bundle was written."""

    code = "artefacts"


class Stage:
    """The folder. Every file in it has the content that its name says; what arrives is checked first."""

    def __init__(self) -> None:
        self.folder = cache.root() / "bundles"
        self.blobs = self.folder / "blobs" / "sha256"
        self.blobs.mkdir(parents=True, exist_ok=True)

    def path(self, sha256: str) -> Path:
        return self.blobs / sha256

    def has(self, sha256: str) -> bool:
        """Return whether a file is there and unchanged; one that is changed is removed."""
        path = self.path(sha256)
        if not sha256 or not path.is_file():
            return False
        if cache.file_digest(path) == sha256:
            return True
        path.unlink()
        return False

    @contextmanager
    def folder_for_work(self) -> Iterator[Path]:
        """Yield a temporary folder on the same disk."""
        with tempfile.TemporaryDirectory(dir=self.folder, prefix=".new-") as name:
            yield Path(name)

    def take(self, chunks: Iterable[bytes], what: str, where: str, pin: str) -> str:
        """Keep a file and return its SHA-256. pin: what it must be, "" if nothing is known.

        what: its name; where: it comes from. Raises ArtefactError if it is another file, which isn't kept.
        """
        sha256 = hashlib.sha256()
        with self.folder_for_work() as work:
            path = work / "file"
            with naming(path), path.open("wb") as file:
                for chunk in chunks:
                    sha256.update(chunk)
                    file.write(chunk)
            digest = sha256.hexdigest()
            if pin and digest != pin:
                raise ArtefactError(
                    f"{what} from {where} has SHA-256 {digest}, but {pin} is expected. It was not used; trust neither until "
                    "you know why they differ"
                )
            path.rename(self.path(digest))
        return digest
