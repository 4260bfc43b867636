"""Images of a bundle: taken from registries by crane, with every manifest that an index names, so that digests stay.

A registry accepts an index only with all images that it names, so images for other architectures come along.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from operations.bundles.crane import Crane, CraneError
from operations.bundles.stage import ArtefactError, Stage

Say = Callable[[str], None]
_INDEX = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
_MANIFEST = ("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json")


@dataclass(frozen=True)
class Content:
    """An image in the stage. media: type of its manifest or index; needs: SHA-256 of everything else."""

    sha256: str
    media: str
    needs: tuple[str, ...]


class Registry:
    """Images from the registries that their names say, or from a mirror with the same paths: host:port."""

    def __init__(self, mirror: str, say: Say) -> None:
        self._mirror = mirror
        self._crane = Crane(say)

    def reference(self, image: str) -> str:
        """Return the image's name where it is taken from."""
        return f"{self._mirror}/{image.partition('/')[2]}" if self._mirror else image

    def digest(self, image: str) -> str:
        """Return the SHA-256 that the registry has for an image's tag. Raises ArtefactError."""
        return self._run(image, "digest", self.reference(image)).removeprefix("sha256:")

    def take(self, image: str, sha256: str, stage: Stage) -> Content:
        """Copy an image to the stage. crane verifies each part, and so does the stage. Raises ArtefactError."""
        repository = self.reference(image).rpartition(":")[0]
        with stage.folder_for_work() as work:
            self._run(image, "pull", "--format=oci", f"{repository}@sha256:{sha256}", str(work / "layout"))
            for path in sorted((work / "layout" / "blobs" / "sha256").iterdir()):
                stage.take(_chunks(path), f"a part of {image}", self.reference(image), path.name)
        return content(stage, sha256)

    def _run(self, image: str, *words: str) -> str:
        try:
            return self._crane(*words)
        except CraneError as error:
            raise ArtefactError(f"{self.reference(image)} can't be pulled: {error}") from None


def content(stage: Stage, sha256: str) -> Content:
    """Return an image whose parts are all in the stage. Raises ArtefactError for the first that is missing."""
    needs = dict.fromkeys(_below(stage, sha256))
    return Content(sha256, media_of(_document(stage, sha256)), tuple(needs))


def media_of(document: dict[str, Any]) -> str:
    """Return the media type of a manifest or an index. OCI leaves it out of some."""
    default = _INDEX[0] if "manifests" in document else _MANIFEST[0]
    return str(document.get("mediaType") or default)


def _below(stage: Stage, sha256: str) -> Iterator[str]:
    document = _document(stage, sha256)
    if "manifests" in document:
        for part in document["manifests"]:
            below = _plain(part)
            yield below
            yield from _below(stage, below)
        return
    for part in (document.get("config"), *document.get("layers", ())):
        if part and not part.get("urls"):  # with urls: layers that no registry distributes
            below = _plain(part)
            if not stage.path(below).is_file():
                raise ArtefactError(f"an image lacks its part {below}")
            yield below


def _document(stage: Stage, sha256: str) -> dict[str, Any]:
    try:
        document = json.loads(stage.path(sha256).read_bytes())
    except (OSError, ValueError) as error:
        raise ArtefactError(f"an image lacks its manifest {sha256}: {error}") from None
    if not isinstance(document, dict):
        raise ArtefactError(f"{sha256} is no manifest of an image")
    return document


def _plain(part: dict[str, Any]) -> str:
    algorithm, _, digest = str(part.get("digest")).partition(":")
    if algorithm != "sha256" or len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
        raise ArtefactError(f"an image has a part with the digest {part.get('digest')!r}; only SHA-256 is supported")
    return digest


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            yield chunk
