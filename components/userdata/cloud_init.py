"""Payload -> user data, for cloud-init or as a script. Equal input gives equal bytes."""

from __future__ import annotations

import base64
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from components.userdata.joined import joined
from components.userdata.payload import Payload, pack
from components.userdata.stores import SecretStoreAdapter

_HERE = Path(__file__).resolve().parent
LIMIT_BYTES = 16384
"""AWS's limit before base64, the smallest. Azure takes 64 KiB, Google Cloud 256 KiB."""

_environment = Environment(
    loader=FileSystemLoader(_HERE),
    undefined=StrictUndefined,
    trim_blocks=True,
    autoescape=False,
    keep_trailing_newline=True,
)
_environment.filters["pack"] = pack


class UserDataTooLarge(ValueError):
    """The text would not fit into the user data of every cloud."""


def render(payload: Payload, store: SecretStoreAdapter, hostname: str | None = None, limit: int = LIMIT_BYTES) -> str:
    """The user data of one host: cloud-init places two programs and the payload's name and hash, and starts the first.

    The host then fetches the payload from its store, where it must be before the host boots.
    `hostname` None leaves the name that the cloud gave (instance groups).
    Raises UserDataTooLarge above `limit`.
    """
    text = _cloud_config(payload, store, hostname)
    _refuse_above(limit, len(text.encode()))
    return text


def render_packed(payload: Payload, store: SecretStoreAdapter, hostname: str | None, limit: int) -> str:
    """The same in gzip and base64. `limit` counts bytes before base64."""
    packed = pack(_cloud_config(payload, store, hostname))
    _refuse_above(limit, len(base64.b64decode(packed)))
    return packed


def _cloud_config(payload: Payload, store: SecretStoreAdapter, hostname: str | None) -> str:
    template = _environment.get_template("cloud-config.yaml.j2")
    return template.render(hostname=hostname, payload=payload, programs=_programs(store))


def _refuse_above(limit: int, size: int) -> None:
    if size > limit:
        raise UserDataTooLarge(
            f"user data is {size} bytes and {limit} are taken; it holds the boot program and the store's, "
            "whatever the cluster: make these shorter"
        )


def startup_script(payload: Payload, store: SecretStoreAdapter, hostname: str | None = None) -> str:
    """The same for images without cloud-init, as a script that an agent runs at every boot; and it has the payload.

    Debian's image for Google Cloud is one (debian-cloud-images, class GCE): its guest agent runs `startup-script`, and
    nobody reads `user-data`. 256 KiB hold a payload too ("Metadata", Compute Engine API). So it goes with the template
    that names it, and hosts of a former template find theirs whenever they boot.
    """
    template = _environment.get_template("startup.sh.j2")
    return template.render(hostname=hostname, payload=payload, programs=_programs(store))


def _programs(store: SecretStoreAdapter) -> list[tuple[str, str, str]]:
    """(path, mode, text)."""
    return [
        ("/usr/local/sbin/menagerie-boot", "0755", boot_program()),
        ("/usr/local/sbin/menagerie-secret", "0700", store.script()),
        ("/etc/systemd/system/menagerie-boot.service", "0644", (_HERE / "menagerie-boot.service").read_text()),
    ]


def boot_program() -> str:
    """The program that runs at boot, of short modules."""
    names = ("host", "system", "disks", "downloads", "store", "units", "main")
    return joined(_HERE / "boot", tuple(_HERE / "boot" / f"{name}.py" for name in names))
