"""The part of the model that is about bare iron: what a site's machines are installed with, and by which way.

`hosts.yaml` says which machines there are, by rack, MAC and BMC; here is what all of a site share. `provisioning`
renders the installer's files of it and talks to the machines' BMCs.
"""

from __future__ import annotations

import base64
import binascii
import re
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from cluster import disk_names
from cluster.model import Model
from cluster.quantities import PLAIN_URL, Address, Bytes, Domain, Name, Port, refuse
from cluster.references import reference_or
from cluster.words import KeyPath

_PLAIN_URL = f"{PLAIN_URL}/?"
_REPORTS = r"http://([0-9]{1,3}\.){3}[0-9]{1,3}:[0-9]{2,5}"
# RFC 4253 and RFC 8709; sk- keys are those of FIDO tokens (OpenSSH, PROTOCOL.u2f).
_KEY_TYPE = r"ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(?:256|384|521)|sk-(?:ssh-ed25519|ecdsa-sha2-nistp256)@openssh\.com"
_KEY = rf"({_KEY_TYPE}) ([A-Za-z0-9+/]+={{0,2}})( [A-Za-z0-9@._+-]+)?"


def parse_url(value: Any) -> Any:
    """An address for installers: without anything that a shell, iPXE or a kernel's command line would read otherwise."""
    if isinstance(value, str) and "@" in value:
        hint = "remove what stands before the @; what is served is no secret, and machines are known by their addresses"
        raise refuse("PRV-001", "holds a user or password in clear, which every machine that boots would read", hint)
    if isinstance(value, str) and not re.fullmatch(_PLAIN_URL, value):
        hint = "write http:// or https://, a host, and a plain path: http://10.8.255.5/menagerie"
        raise refuse("PRV-001", f"{value!r} isn't an address that an installer can fetch from", hint)
    return value.removesuffix("/") if isinstance(value, str) else value


def parse_reports(value: Any) -> Any:
    """An address of the operator's machine, and a port there."""
    if isinstance(value, str) and not re.fullmatch(_REPORTS, value):
        hint = "write an address of the machine that runs `machines install`, and a port: http://10.8.255.5:8642"
        raise refuse("PRV-001", f"{value!r} isn't http://, an IPv4 address and a port, without a path", hint)
    return value


def parse_public_key(value: Any) -> Any:
    """One line of authorized_keys. A private key is refused without being repeated."""
    found = re.fullmatch(_KEY, value) if isinstance(value, str) else None
    if isinstance(value, str) and (found is None or _inner_type(found[2]) != found[1]):
        hint = "write the line of a .pub file, for example that of ~/.ssh/id_ed25519.pub"
        raise refuse("PRV-005", "isn't a public key of SSH; what is found there is not repeated", hint)
    return value


def _inner_type(data: str) -> str:
    """RFC 4253, 6.6: a public key begins with the length and the name of its type."""
    try:
        raw = base64.b64decode(data, validate=True)
    except binascii.Error:
        return ""
    return raw[4 : 4 + int.from_bytes(raw[:4], "big")].decode(errors="replace")


Url = Annotated[str, BeforeValidator(parse_url), WithJsonSchema({"type": "string", "pattern": f"^{_PLAIN_URL}$"})]
ReportsUrl = Annotated[
    str, BeforeValidator(parse_reports), WithJsonSchema({"type": "string", "pattern": f"^{_REPORTS}$"})
]
DiskName = Annotated[str, BeforeValidator(disk_names.parser("PRV-003")), disk_names.SCHEMA]
PublicKey = Annotated[
    str, BeforeValidator(parse_public_key), WithJsonSchema({"type": "string", "pattern": f"^{_KEY}$"})
]


class Release(StrEnum):
    """What is installed."""

    BOOKWORM = "bookworm"
    """Debian 12."""


class SystemDisk(Model):
    """Which disk of a machine is the system's. Exactly one must fit, and hold nothing: else nothing is written."""

    by_id: DiskName | None = None
    """Name in /dev/disk/by-id, with * and ? in it: the model, say. Names of the kernel (sdb) change with a boot."""
    min_size: Bytes | None = None
    """A smaller disk isn't meant."""
    max_size: Bytes | None = None
    """A larger disk isn't meant."""


class BmcCredentials(Model):
    """Where user and password of BMCs are: never in a file of the inventory."""

    secret: Name
    """Its name in the stack's configuration; the secret itself is user:password."""

    @model_validator(mode="before")
    @classmethod
    def _is_no_password(cls, value: Any) -> Any:
        message = "holds what may be the password itself; a reference to a secret must stand here"
        hint = "store it with: ./menagerie secret <cluster> bmc-<site>, and write {secret: bmc-<site>}"
        return reference_or(refuse("PRV-004", message, hint), value, alone=True)


class Bmcs(Model):
    """How the management controllers of a site's machines are reached: Redfish over TLS, always verified."""

    credentials: BmcCredentials
    """User and password, by the name of a secret."""
    ca: KeyPath | None = None
    """File beside cluster.yaml: the authority (PEM) that signed the BMCs' certificates, which must name their addresses."""
    pins: KeyPath | None = None
    """File beside cluster.yaml: a line for each BMC, its address and its certificate's SHA-256. For self-signed ones."""
    port: Port = 443
    """TCP port of Redfish."""
    parallel: int = Field(default=16, ge=1, le=128)
    """Most BMCs that are spoken to at once."""


class FirstStage(StrEnum):
    """What keeps a machine from starting anybody else's program in place of your iPXE."""

    MEDIA = "media"
    """Its BMC attaches the image `media` from an https address, and verifies it."""
    SECURE_BOOT = "secure-boot"
    """Its firmware starts only what your own key has signed: Secure Boot with that key alone in its database."""


class Provisioning(Model):
    """What machines of a site are installed with. None of it is secret: it is served to whatever boots there."""

    release: Release = Field(default=Release.BOOKWORM, strict=False)
    """bookworm: Debian 12."""
    server: Url
    """Where machines of the site fetch what `machines render` writes: http://10.8.255.5/menagerie."""
    mirror: Url
    """Archive of Debian, as machines of the site reach it: http://10.9.255.5/debian. Packages are signed; the installer's kernel and initrd are not, so copy those to the server."""
    media: Url | None = None
    """Image (ISO) that BMCs attach to a machine in place of PXE: iPXE with menagerie.ipxe in it. Default: PXE."""
    first_stage: FirstStage | None = Field(default=None, strict=False)
    """media or secure-boot: how a machine comes to your iPXE, which has the authority of `server` and menagerie.ipxe in it. Default: by PXE, which whoever is on the machines' network can answer; then no machine is installed anew by itself."""
    disk: SystemDisk
    """Which disk is the system's."""
    authorized_keys: tuple[PublicKey, ...] = Field(strict=False)
    """Public keys that may log in as ssh.user. There is no password."""
    ntp: tuple[Domain, ...] = Field(min_length=1, strict=False)
    """Servers of the time: certificates are trusted by it."""
    nameservers: tuple[Address, ...] = Field(min_length=1, strict=False)
    """Resolvers."""
    router: int = Field(default=1, ge=1)
    """Which address of each rack is its router's, counted from the range's own: 1 is 10.8.1.1 in 10.8.1.0/24."""
    reports: ReportsUrl | None = None
    """Where `machines install` hears a machine's SSH host key: http://10.8.255.5:8642, an address of the machine that it
    runs on. Default: keys are not heard, and you bring known_hosts yourself."""
    bmc: Bmcs | None = None
    """Default: machines are powered and booted by hand."""


def bmc_secrets(sites: dict[str, Any]) -> tuple[str, ...]:
    """Names of the secrets with credentials of BMCs, of all sites. The stack's program does not need them."""
    found = [site.provisioning.bmc for site in sites.values() if site.provisioning and site.provisioning.bmc]
    return tuple(dict.fromkeys(bmc.credentials.secret for bmc in found))
