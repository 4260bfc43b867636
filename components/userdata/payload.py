"""Turns a HostConfig into the payload that a host fetches from its store. Equal input gives equal bytes."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import lzma
import struct
import zlib
from dataclasses import asdict, dataclass, replace
from typing import Any

from cluster.artefacts import ArtefactSource
from cluster.files import Download, HostConfig
from components.userdata import applying, refreshing

LABEL_BYTES = 16
# Tuned for text: no position bits, and a small window so that hosts need little memory.
_XZ = {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 1 << 20, "pb": 0}


@dataclass(frozen=True)
class Payload:
    """The full configuration of a host, as JSON: file texts, URLs and checksums of downloads, names of secrets, units.

    It contains no secrets. It is too long for the user data of some clouds, which has its name and hash instead.
    """

    text: str

    @classmethod
    def of(cls, config: HostConfig, source: ArtefactSource) -> Payload:
        """Return the payload of `config`, with its downloads resolved by `source`.

        Raises KeyError if a download has no checksum, and ValueError if `config` contradicts itself.
        """
        if config.refresh:
            start = (*config.start, refreshing.TIMER)
            own = (*refreshing.files(), *(applying.files() if config.refresh.programs else ()))
            config = replace(config, files=(*config.files, *own), start=start)
        _refuse_contradictions(config)
        plain: dict[str, Any] = {
            "packages": config.packages,
            "disks": [asdict(disk) for disk in config.disks],
            "users": config.users,
            "files": [asdict(file) for file in config.files],
            "downloads": [_download(item, source) for item in config.downloads],
            "secrets": [asdict(secret) for secret in config.secrets],
            "start": config.start,
            **({"refresh": asdict(config.refresh)} if config.refresh else {}),
        }
        return cls(json.dumps(plain, indent=0, ensure_ascii=False) + "\n")

    @property
    def sha256(self) -> str:
        """Return the SHA-256 of the text, in hex. It does not depend on how the store's value is packed."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def name(self) -> str:
        """Return the payload's name in the store. Each text has its own name, so no host fetches the wrong payload."""
        return f"payload-{self.sha256[:16]}"

    def packed(self) -> str:
        """Return the store's value. Azure's Key Vault takes 25 kB, the others 64 KiB."""
        return packed(self.text)


@functools.lru_cache(maxsize=64)
def packed(text: str) -> str:
    """Return the text in xz and base85, whose alphabet (RFC 1924) has no characters that JSON escapes.

    Cached because a stack needs the same value in several places, and each call takes 70 ms of CPU time.
    """
    return base64.b85encode(lzma.compress(text.encode(), check=lzma.CHECK_CRC32, filters=[_XZ])).decode()


def unpacked(text: str) -> str:
    """Undo `packed`."""
    return lzma.decompress(base64.b85decode(text)).decode()


def pack(text: str) -> str:
    """Return the text in gzip and base64, for cloud-init."""
    data = text.encode()
    # gzip.compress writes a different header from Python 3.13 on; user data must not depend on the Python version.
    deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = deflate.compress(data) + deflate.flush()
    header = b"\x1f\x8b\x08\x00" + struct.pack("<I", 0) + b"\x02\xff"
    packed = header + body + struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFFFFFF)
    return base64.b64encode(packed).decode()


def _refuse_contradictions(config: HostConfig) -> None:
    first = {secret.path: secret for secret in reversed(config.secrets)}
    for secret in config.secrets:
        if (secret.mode, secret.owner) != (first[secret.path].mode, first[secret.path].owner):
            raise ValueError(f"{secret.path} is joined from secrets with different modes or owners; give them the same")
    for disk in config.disks:
        if not 0 < len(disk.label.encode()) <= LABEL_BYTES:
            raise ValueError(f"{disk.label!r} can't be the label of a file system: ext4 takes 1 to {LABEL_BYTES} bytes")
    for what in ("mount", "label"):
        values = [str(getattr(disk, what)) for disk in config.disks]
        if repeated := sorted({value for value in values if values.count(value) > 1}):
            raise ValueError(f"two disks have the same {what}: {', '.join(repeated)}")
    files = [file.path for file in config.files]
    repeated_paths = {path for path in files if files.count(path) > 1} | (set(files) & set(first))
    if repeated_paths:
        raise ValueError(f"written twice: {', '.join(sorted(repeated_paths))}")


def _download(item: Download, source: ArtefactSource) -> dict[str, Any]:
    if bool(item.path) == bool(item.members):
        raise ValueError(
            f"download {item.artefact.name} needs either a path or members of the archive, not both or none"
        )
    return {
        "url": source.url(item.artefact),
        "sha256": source.checksum(item.artefact),
        "path": item.path,
        "members": item.members,
        "mode": item.mode,
        "late": item.is_late,
    }
