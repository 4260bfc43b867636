"""HostConfig -> cloud-init user data. Equal input gives equal bytes."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from cluster.artefacts import ArtefactSource
from cluster.files import Download, HostConfig
from userdata.stores import SecretStoreAdapter

_HERE = Path(__file__).resolve().parent
_CONFIG_PATH = "/var/lib/menagerie/boot.json"
LIMIT_BYTES = 65535
"""Azure's limit on custom data before base64. Google Cloud takes 256 KiB, AWS 16 KiB."""

_environment = Environment(
    loader=FileSystemLoader(_HERE),
    undefined=StrictUndefined,
    trim_blocks=True,
    autoescape=False,
    keep_trailing_newline=True,
)


class UserDataTooLarge(ValueError):
    """The text would not fit into the user data of every cloud."""


@dataclass(frozen=True)
class _Packed:
    path: str
    permissions: str
    content: str


def render(config: HostConfig, source: ArtefactSource, store: SecretStoreAdapter, hostname: str | None = None) -> str:
    """The user data of one host: cloud-init places a boot program and its JSON, and starts it.

    The JSON holds all of `config` with downloads as URLs and checksums, and secrets by name only.
    `hostname` None leaves the name that the cloud gave (instance groups).
    Raises KeyError where a download has no checksum and UserDataTooLarge above `LIMIT_BYTES`.
    """
    packed = [
        _pack(_CONFIG_PATH, 0o600, boot_json(config, source)),
        _pack("/usr/local/sbin/menagerie-boot", 0o755, (_HERE / "boot.py").read_text()),
        _pack("/usr/local/sbin/menagerie-secret", 0o700, store.script()),
        _pack("/etc/systemd/system/menagerie-boot.service", 0o644, (_HERE / "menagerie-boot.service").read_text()),
    ]
    template = _environment.get_template("cloud-config.yaml.j2")
    text = template.render(hostname=hostname, files=packed, config_path=_CONFIG_PATH)
    if len(text.encode()) > LIMIT_BYTES:
        raise UserDataTooLarge(
            f"user data is {len(text.encode())} bytes, clouds take {LIMIT_BYTES}: move files into an image"
        )
    return text


def boot_json(config: HostConfig, source: ArtefactSource) -> str:
    """What the boot program reads: `config` as JSON, with URLs and checksums resolved by `source`."""
    _refuse_contradictions(config)
    plain: dict[str, Any] = {
        "packages": config.packages,
        "users": config.users,
        "files": [asdict(file) for file in config.files],
        "downloads": [_download(item, source) for item in config.downloads],
        "secrets": [asdict(secret) for secret in config.secrets],
        "start": config.start,
    }
    return json.dumps(plain, indent=0, ensure_ascii=False) + "\n"


def _refuse_contradictions(config: HostConfig) -> None:
    first = {secret.path: secret for secret in reversed(config.secrets)}
    for secret in config.secrets:
        if (secret.mode, secret.owner) != (first[secret.path].mode, first[secret.path].owner):
            raise ValueError(f"{secret.path} is joined from secrets with different modes or owners")
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
    }


def _pack(path: str, mode: int, text: str) -> _Packed:
    return _Packed(path, f"{mode:04o}", base64.b64encode(_gzip(text.encode())).decode())


def _gzip(data: bytes) -> bytes:
    # gzip.compress writes another header from Python 3.13 on; user data must not change with it.
    deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = deflate.compress(data) + deflate.flush()
    header = b"\x1f\x8b\x08\x00" + struct.pack("<I", 0) + b"\x02\xff"
    return header + body + struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFFFFFF)
