"""Write an image as blobs named by their SHA-256: the same content makes the same bytes.

Sources: OCI Image Format Specification 1.1, "Image Manifest", "Image Configuration", "Image Layout".
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from cluster.artefacts import ARCH
from tools.oci import tar

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
_CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
_LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar"


@dataclass(frozen=True)
class Image:
    """A container image.

    layers: the lowest first. user, command: as in a Dockerfile; "" for root, () for none. environment: NAME=value.
    """

    layers: tuple[tuple[tar.Entry, ...], ...]
    entrypoint: tuple[str, ...]
    user: str = ""
    environment: tuple[str, ...] = (f"PATH={PATH}",)
    command: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Layer:
    """A layer that was written. digest, size: of the blob; content: digest of its tar."""

    digest: str
    size: int
    content: str


def write(image: Image, blobs: Path, *, packed: bool = False) -> bytes:
    """Write the image's blobs to `blobs` under sha256/<digest>; return its manifest.

    packed: compress layers with gzip, for images that cross networks. Only one process may write to a folder at a time.
    Raises OSError from the disk.
    """
    folder = blobs / "sha256"
    folder.mkdir(parents=True, exist_ok=True)
    layers = [_layer(entries, folder, packed=packed) for entries in image.layers]
    config = _json(
        {
            "architecture": ARCH,
            "os": "linux",
            "config": {
                "Entrypoint": image.entrypoint,
                **({"Cmd": image.command} if image.command else {}),
                "Env": image.environment,
                "User": image.user,
            },
            "rootfs": {"type": "layers", "diff_ids": [layer.content for layer in layers]},
        }
    )
    kind = f"{_LAYER_TYPE}+gzip" if packed else _LAYER_TYPE
    return _json(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": _descriptor(_CONFIG_TYPE, _put(folder, config), len(config)),
            "layers": [_descriptor(kind, layer.digest, layer.size) for layer in layers],
        }
    )


def write_layout(image: Image, folder: Path) -> str:
    """Write only this image to `folder` in OCI's image layout, which registry clients push; return the manifest's digest."""
    manifest = write(image, folder / "blobs", packed=True)
    digest = _put(folder / "blobs" / "sha256", manifest)
    index = {
        "schemaVersion": 2,
        "mediaType": _INDEX_TYPE,
        "manifests": [_descriptor(MANIFEST_TYPE, digest, len(manifest))],
    }
    (folder / "oci-layout").write_bytes(_json({"imageLayoutVersion": "1.0.0"}))
    (folder / "index.json").write_bytes(_json(index))
    return digest


def _layer(entries: tuple[tar.Entry, ...], folder: Path, *, packed: bool) -> _Layer:
    with _fresh(folder) as new_file:
        with new_file.open("wb") as file, ExitStack() as ends:
            below = ends.enter_context(gzip.GzipFile("", "wb", 6, file, mtime=0)) if packed else file
            content = _Hashing(cast("IO[bytes]", below))
            tar.write(cast("IO[bytes]", content), entries)
        with new_file.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = new_file.stat().st_size
        new_file.replace(folder / digest)
    return _Layer(f"sha256:{digest}", size, f"sha256:{content.sha.hexdigest()}")


class _Hashing:
    """A stream that hashes what it passes on to `stream`. tarfile only needs these methods of a file that it writes to."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self.sha, self._at = stream, hashlib.sha256(), 0

    def write(self, data: bytes) -> int:
        self.sha.update(data)
        self._at += len(data)
        return self._stream.write(data)

    def tell(self) -> int:
        return self._at


def _put(folder: Path, content: bytes) -> str:
    digest = hashlib.sha256(content).hexdigest()
    with _fresh(folder) as new_file:
        new_file.write_bytes(content)
        new_file.replace(folder / digest)
    return f"sha256:{digest}"


@contextmanager
def _fresh(folder: Path) -> Iterator[Path]:
    """Yield a path next to the blobs; remove it afterwards unless it was renamed."""
    new_file = folder / ".new"
    try:
        yield new_file
    finally:
        new_file.unlink(missing_ok=True)


def _descriptor(media: str, digest: str, size: int) -> dict[str, object]:
    return {"mediaType": media, "digest": digest, "size": size}


def _json(value: object) -> bytes:
    return json.dumps(value, indent=1).encode()
