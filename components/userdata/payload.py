"""HostConfig -> the payload that a host fetches from its store. Equal input gives equal bytes."""

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
# For text: no bits for positions, and a window that no host needs to keep much memory for.
_XZ = {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 1 << 20, "pb": 0}


@dataclass(frozen=True)
class Payload:
    """All that a host is to be, as JSON: file texts, URLs and checksums of downloads, names of secrets, units.

    Nothing in it is secret. It is too long for some clouds' user data, which holds its name and hash instead.
    """

    text: str

    @classmethod
    def of(cls, config: HostConfig, source: ArtefactSource) -> Payload:
        """`config` with its downloads resolved by `source`.

        Raises KeyError where a download has no checksum and ValueError where `config` contradicts itself.
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
        """Of the text, in hex. How the store's value is packed does not count."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def name(self) -> str:
        """Under which the store holds it. Another text has another name, so no host finds what it is not to be."""
        return f"payload-{self.sha256[:16]}"

    def packed(self) -> str:
        """The store's value. Azure's Key Vault takes 25 kB, the others 64 KiB."""
        return packed(self.text)


@functools.lru_cache(maxsize=64)
def packed(text: str) -> str:
    """xz in base85, whose alphabet (RFC 1924) has nothing that JSON would escape.

    A stack asks for the same value in several places, and each takes 70 ms of processor.
    """
    return base64.b85encode(lzma.compress(text.encode(), check=lzma.CHECK_CRC32, filters=[_XZ])).decode()


def unpacked(text: str) -> str:
    """What `packed` has packed."""
    return lzma.decompress(base64.b85decode(text)).decode()


def pack(text: str) -> str:
    """gzip in base64, as cloud-init unpacks it."""
    data = text.encode()
    # gzip.compress writes another header from Python 3.13 on; user data must not change with it.
    deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = deflate.compress(data) + deflate.flush()
    header = b"\x1f\x8b\x08\x00" + struct.pack("<I", 0) + b"\x02\xff"
    packed = header + body + struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFFFFFF)
    return base64.b64encode(packed).decode()


def _refuse_contradictions(config: HostConfig) -> None:
    first = {secret.path: secret for secret in reversed(config.secrets)}
    for secret in config.secrets:
        if (secret.mode, secret.owner) != (first[secret.path].mode, first[secret.path].owner):
            raise ValueError(f"{secret.path} is joined from secrets with different modes or owners")
    for disk in config.disks:
        if not 0 < len(disk.label.encode()) <= LABEL_BYTES:
            raise ValueError(f"{disk.label!r} can't be the label of a file system: ext4 takes {LABEL_BYTES} bytes")
    for what in ("mount", "label"):
        values = [str(getattr(disk, what)) for disk in config.disks]
        if again := sorted({value for value in values if values.count(value) > 1}):
            raise ValueError(f"two disks have the same {what}: {', '.join(again)}")
    files = [file.path for file in config.files]
    twice = {path for path in files if files.count(path) > 1} | (set(files) & set(first))
    if twice:
        raise ValueError(f"written twice: {', '.join(sorted(twice))}")


def _download(item: Download, source: ArtefactSource) -> dict[str, Any]:
    if bool(item.path) == bool(item.members):
        raise ValueError(f"download {item.artefact.name} needs either a path or members of the archive")
    return {
        "url": source.url(item.artefact),
        "sha256": source.checksum(item.artefact),
        "path": item.path,
        "members": item.members,
        "mode": item.mode,
        "late": item.is_late,
    }
