"""Where files of a bundle come from: a folder or a web server with upstream's layout, or the projects' own sites."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import urllib3

from operations.bundles.stage import CHUNK, ArtefactError

_TIMEOUT = urllib3.Timeout(connect=20, read=120)
_RETRIES = urllib3.Retry(3, backoff_factor=1, status_forcelist=(429, 502, 503, 504), raise_on_status=False)
MOST_TEXT = 4 << 20
"""Bytes of a list of checksums. GitHub's answers about a release are the largest: less than 1 MB."""


class Place(Protocol):
    """A place with files by source, host/path."""

    def where(self, source: str) -> str:
        """Return the file's path or URL, for messages."""

    def chunks(self, source: str) -> Iterator[bytes]:
        """Yield the file's content. Raises ArtefactError."""


class FolderPlace:
    """A folder as ``folder/<host>/<path>``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def where(self, source: str) -> str:
        return str(self._folder / source)

    def chunks(self, source: str) -> Iterator[bytes]:
        try:
            with (self._folder / source).open("rb") as file:
                while chunk := file.read(CHUNK):
                    yield chunk
        except OSError as error:
            raise ArtefactError(f"{self.where(source)} can't be read: {error.strerror}") from None


class WebPlace:
    """A mirror at `base`, as ``<base>/<host>/<path>``; with "" the projects' own sites over TLS."""

    def __init__(self, base: str = "") -> None:
        self._base = base.rstrip("/")
        self._http = urllib3.PoolManager(timeout=_TIMEOUT, retries=_RETRIES)

    def where(self, source: str) -> str:
        return f"{self._base}/{source}" if self._base else f"https://{source}"

    def chunks(self, source: str) -> Iterator[bytes]:
        url = self.where(source)
        try:
            with self._answer(url) as response:
                if response.status != 200:
                    raise ArtefactError(f"{url} responds with {response.status} {response.reason}")
                yield from response.stream(CHUNK)
        except urllib3.exceptions.HTTPError as error:
            raise ArtefactError(f"{url} can't be downloaded: {error}") from None

    @contextmanager
    def _answer(self, url: str) -> Iterator[urllib3.BaseHTTPResponse]:
        # enforce_content_length, which is the default, turns an interrupted download into an error.
        response = self._http.request("GET", url, preload_content=False)
        try:
            yield response
        finally:
            response.release_conn()


def place_of(words: str) -> Place:
    """Return the place that an operator names: a URL, or a folder. Raises ArtefactError if there is no such folder."""
    if words.startswith(("http://", "https://")):
        return WebPlace(words)
    folder = Path(words).expanduser()
    if not folder.is_dir():
        raise ArtefactError(f"{folder} is no folder; name one with upstream's layout, or a mirror's URL")
    return FolderPlace(folder)


def text(place: Place, source: str) -> str:
    """Return a small text, such as a list of checksums. Raises ArtefactError."""
    parts, size = [], 0
    for chunk in place.chunks(source):
        size += len(chunk)
        if size > MOST_TEXT:
            raise ArtefactError(
                f"{place.where(source)} is larger than {MOST_TEXT:,} bytes, so it is no list of checksums"
            )
        parts.append(chunk)
    return b"".join(parts).decode("utf-8", "replace")
