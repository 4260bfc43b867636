"""Turns a payload into user data, for cloud-init or as a script. Equal input gives equal bytes."""

from __future__ import annotations

import base64
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from components.userdata.joined import joined
from components.userdata.payload import Payload, pack
from components.userdata.stores import SecretStoreAdapter

_HERE = Path(__file__).resolve().parent
LIMIT_BYTES = 16384
"""AWS's limit before base64, the smallest of all clouds. Azure takes 64 KiB, Google Cloud 256 KiB."""

_environment = Environment(
    loader=FileSystemLoader(_HERE),
    undefined=StrictUndefined,
    trim_blocks=True,
    autoescape=False,
    keep_trailing_newline=True,
)
_environment.filters["pack"] = pack


class UserDataTooLarge(ValueError):
    """The text does not fit into user data."""


def render(payload: Payload, store: SecretStoreAdapter, hostname: str | None = None, limit: int = LIMIT_BYTES) -> str:
    """Return the user data of one host: cloud-init writes the payload's name and hash and two programs, and starts one.

    The host then fetches the payload from its store: store it there before the host boots.
    hostname: None keeps the name that the cloud assigned (instance groups). Raises UserDataTooLarge above `limit` bytes.
    """
    text = _cloud_config(payload, store, hostname)
    _refuse_above(limit, len(text.encode()))
    return text


def render_packed(payload: Payload, store: SecretStoreAdapter, hostname: str | None, limit: int) -> str:
    """Return the user data of `render` in gzip and base64. limit: in bytes before base64."""
    packed = pack(_cloud_config(payload, store, hostname))
    _refuse_above(limit, len(base64.b64decode(packed)))
    return packed


def _cloud_config(payload: Payload, store: SecretStoreAdapter, hostname: str | None) -> str:
    template = _environment.get_template("cloud-config.yaml.j2")
    return template.render(hostname=hostname, payload=payload, programs=_programs(store))


def _refuse_above(limit: int, size: int) -> None:
    if size > limit:
        raise UserDataTooLarge(
            f"user data is {size} bytes, more than the limit of {limit}; it holds the boot program and the store's program, "
            "which are the same for every cluster: make these shorter"
        )


def startup_script(payload: Payload, store: SecretStoreAdapter, hostname: str | None = None) -> str:
    """Return the user data for images without cloud-init: a script with the payload, which an agent runs at every boot.

    Debian's image for Google Cloud is such an image (debian-cloud-images, class GCE): its guest agent runs
    `startup-script`, and nothing reads `user-data`. The limit of 256 KiB leaves room for a payload ("Metadata", Compute
    Engine API). So the instance template has the payload, and hosts of an older template keep theirs at every boot.
    """
    template = _environment.get_template("startup.sh.j2")
    return template.render(hostname=hostname, payload=payload, programs=_programs(store))


def _programs(store: SecretStoreAdapter) -> list[tuple[str, str, str]]:
    """Return (path, mode, text) of each file."""
    return [
        ("/usr/local/sbin/menagerie-boot", "0755", boot_program()),
        ("/usr/local/sbin/menagerie-secret", "0700", store.script()),
        ("/etc/systemd/system/menagerie-boot.service", "0644", (_HERE / "menagerie-boot.service").read_text()),
    ]


def boot_program() -> str:
    """Return the program that runs at boot, joined from its modules."""
    names = ("host", "system", "disks", "downloads", "store", "units", "main")
    return joined(_HERE / "boot", tuple(_HERE / "boot" / f"{name}.py" for name in names))
