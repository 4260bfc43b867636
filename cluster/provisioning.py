"""The model of provisioning: how a site's machines are installed, and with what.

`hosts.yaml` lists the machines with rack, MAC and BMC; this model has what all machines of a site share. `provisioning`
renders the installer's files from it and talks to the machines' BMCs.
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
# RFC 4253 and RFC 8709; sk- keys belong to FIDO tokens (OpenSSH, PROTOCOL.u2f).
_KEY_TYPE = r"ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(?:256|384|521)|sk-(?:ssh-ed25519|ecdsa-sha2-nistp256)@openssh\.com"
_KEY = rf"({_KEY_TYPE}) ([A-Za-z0-9+/]+={{0,2}})( [A-Za-z0-9@._+-]+)?"


def parse_url(value: Any) -> Any:
    """Validate an address for installers, without characters that a shell, iPXE or a kernel command line could interpret."""
    if isinstance(value, str) and "@" in value:
        hint = "remove everything before the @; the server's files aren't secret, and machines are known by their addresses"
        raise refuse(
            "PRV-001", "contains a user or password in clear text, which every booting machine could read", hint
        )
    if isinstance(value, str) and not re.fullmatch(_PLAIN_URL, value):
        hint = "write http:// or https://, a host and a plain path, for example http://10.8.255.5/menagerie"
        raise refuse("PRV-001", f"{value!r} isn't an address that an installer can fetch from", hint)
    return value.removesuffix("/") if isinstance(value, str) else value


def parse_reports(value: Any) -> Any:
    """Validate an address of the operator's machine, with a port."""
    if isinstance(value, str) and not re.fullmatch(_REPORTS, value):
        hint = "write an address of the machine that runs `machines install`, and a port, for example http://10.8.255.5:8642"
        raise refuse("PRV-001", f"{value!r} isn't http://, an IPv4 address and a port without a path", hint)
    return value


def parse_public_key(value: Any) -> Any:
    """Validate one line of authorized_keys. The message never repeats the value, which may be a private key."""
    match = re.fullmatch(_KEY, value) if isinstance(value, str) else None
    if isinstance(value, str) and (match is None or _inner_type(match[2]) != match[1]):
        hint = "write the line of a .pub file, for example that of ~/.ssh/id_ed25519.pub"
        raise refuse("PRV-005", "isn't a public SSH key; the value isn't shown, as it may be a private one", hint)
    return value


def _inner_type(data: str) -> str:
    """Return the type inside a public key, which starts with the length and name of its type (RFC 4253, 6.6)."""
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
    """The operating system to install."""

    BOOKWORM = "bookworm"
    """Debian 12."""
    TRIXIE = "trixie"
    """Debian 13."""


class SystemDisk(Model):
    """Which disk of a machine gets the system. Exactly one must match and be empty; otherwise nothing is written."""

    by_id: DiskName | None = None
    """Name in /dev/disk/by-id, with * and ? as wildcards, usually of the model. Kernel names (sdb) can change at boot."""
    min_size: Bytes | None = None
    """Smaller disks don't match."""
    max_size: Bytes | None = None
    """Larger disks don't match."""


class BmcCredentials(Model):
    """Where user and password of BMCs are stored, which is never a file of the inventory."""

    secret: Name
    """Name of the secret in the stack's configuration; its value is user:password."""

    @model_validator(mode="before")
    @classmethod
    def _is_no_password(cls, value: Any) -> Any:
        message = "may contain the password itself; it must be a reference to a secret"
        hint = "store the password with ./menagerie secret <cluster> bmc-<site>, and write {secret: bmc-<site>}"
        return reference_or(refuse("PRV-004", message, hint), value, alone=True)


class Bmcs(Model):
    """Access to the management controllers of a site's machines: Redfish over TLS, always verified."""

    credentials: BmcCredentials
    """Reference to the secret with user and password."""
    reader: BmcCredentials | None = None
    """Reference to the secret with another user and password, of Redfish's role ReadOnly, with which the ledger's controller reads the
    power of machines. Default: it reads none."""
    ca: KeyPath | None = None
    """File next to cluster.yaml with the CA (PEM) that signed the BMCs' certificates, which must contain their addresses."""
    pins: KeyPath | None = None
    """File next to cluster.yaml with a line for each BMC: its address and its certificate's SHA-256. For self-signed
    certificates."""
    port: Port = 443
    """TCP port of Redfish."""
    parallel: int = Field(default=16, ge=1, le=128)
    """Most BMCs to access at the same time."""


class FirstStage(StrEnum):
    """What ensures that a machine boots your iPXE and not somebody else's program."""

    MEDIA = "media"
    """Its BMC attaches the image `media` from an https address, and verifies it."""
    SECURE_BOOT = "secure-boot"
    """Its firmware boots only what your key has signed: Secure Boot with that key alone in its database."""


class Provisioning(Model):
    """How machines of a site are installed. None of it is secret: it is served to anything that boots there."""

    release: Release = Field(default=Release.TRIXIE, strict=False)
    """bookworm: Debian 12; trixie: Debian 13."""
    server: Url
    """URL at which machines of the site fetch the files of `machines render`. For example http://10.8.255.5/menagerie."""
    mirror: Url
    """URL of Debian's archive for machines of the site. For example http://10.9.255.5/debian. Packages are signed, but not the
    installer's kernel and initrd, so copy those to the server."""
    security: Url | None = None
    """URL of Debian's archive of security updates for machines of the site, for example http://10.9.255.5/debian-security.
    Machines then accept lists from it, and from `mirror`, that are older than the week for which Debian signs them. Default:
    security.debian.org, which they must reach."""
    media: Url | None = None
    """URL of an image (ISO) that BMCs attach to a machine instead of PXE: iPXE with menagerie.ipxe embedded. Default: PXE."""
    first_stage: FirstStage | None = Field(default=None, strict=False)
    """media or secure-boot: how a machine boots your iPXE, with the CA of `server` and menagerie.ipxe embedded. Default: by
    PXE, which anybody on the machines' network can answer; then no machine is reinstalled automatically."""
    disk: SystemDisk
    """Which disk gets the system."""
    authorized_keys: tuple[PublicKey, ...] = Field(strict=False)
    """Public keys that can log in as ssh.user. There is no password."""
    ntp: tuple[Domain, ...] = Field(min_length=1, strict=False)
    """Time servers. Verifying certificates needs the right time."""
    nameservers: tuple[Address, ...] = Field(min_length=1, strict=False)
    """DNS resolvers."""
    router: int = Field(default=1, ge=1)
    """Number of the router's address in each rack's range: 1 is 10.8.1.1 in 10.8.1.0/24."""
    reports: ReportsUrl | None = None
    """URL at which `machines install` receives machines' SSH host keys, such as http://10.8.255.5:8642: an address of the
    machine that it runs on. Default: it doesn't, and you maintain known_hosts yourself."""
    bmc: Bmcs | None = None
    """Access to BMCs. Default: machines are powered on and booted by hand."""


def reader_secrets(sites: dict[str, Any]) -> dict[str, str]:
    """Return site -> the secret with the login that reads its machines' power, for those that have one."""
    bmcs = {name: site.provisioning.bmc for name, site in sites.items() if site.provisioning and site.provisioning.bmc}
    return {name: own.reader.secret for name, own in bmcs.items() if own.reader}


def bmc_secrets(sites: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the secrets with BMC credentials, of all sites. The stack's program doesn't need them."""
    bmcs = [site.provisioning.bmc for site in sites.values() if site.provisioning and site.provisioning.bmc]
    return tuple(dict.fromkeys(bmc.credentials.secret for bmc in bmcs))
