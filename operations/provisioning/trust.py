"""Trust between Menagerie and BMCs: verification of their certificates, and a login."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path

from cluster.errors import RefusedError
from cluster.provisioning import Bmcs
from cluster.reading import UnreadableError, read_text

_PIN = re.compile(r"(\S+)\s+(?:sha256:)?((?:[0-9A-Fa-f]{2}:?){32})")


@dataclass(frozen=True)
class Login:
    """A BMC's user and password. store: the command that stores them."""

    user: str
    password: str = field(repr=False)
    store: str

    @classmethod
    def parse(cls, secret: str, store: str) -> Login:
        """Parse ``user:password``; the password may contain colons. Errors never contain the secret."""
        user, colon, password = secret.strip("\r\n").partition(":")
        if not (user and colon and password):
            raise RefusedError(f"the login of BMCs isn't user:password; store it again: {store}", code="bmc-trust")
        return cls(user, password, store)


@dataclass(frozen=True)
class Trust:
    """Either the authority that signed all certificates, or the SHA-256 of each BMC's certificate."""

    ca: Path | None = None
    pins: Mapping[IPv4Address, str] = field(default_factory=dict)

    @classmethod
    def load(cls, bmcs: Bmcs, folder: Path) -> Trust:
        """Load what the spec names. folder: has its files."""
        name = bmcs.ca or bmcs.pins or ""
        path = folder / name
        try:
            text = read_text(path)
        except UnreadableError as error:
            raise RefusedError(
                f"{path} can't be read ({error.reason}), and it is needed to verify BMCs; to create it, see docs/how-to/provisioning.md",
                code="bmc-trust",
            ) from None
        if not bmcs.ca:
            return cls(pins=parse_pins(text, str(path)))
        if "-----BEGIN CERTIFICATE-----" not in text:
            raise RefusedError(f"{path} contains no PEM certificate", code="bmc-trust")
        return cls(ca=path)


def parse_pins(text: str, file: str) -> dict[IPv4Address, str]:
    """Return address -> 64 hex digits. Lines are ``10.9.254.11 sha256:ab12…``; # starts a comment."""
    pins: dict[IPv4Address, str] = {}
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.partition("#")[0].strip()
        if not line:
            continue
        match = _PIN.fullmatch(line)
        try:
            address = IPv4Address(match[1]) if match else None
        except ValueError:
            address = None
        if match is None or address is None:
            raise RefusedError(
                f"{file}:{number}: not an address and a SHA-256; write: 10.9.254.11 sha256:<64 hex digits>",
                code="bmc-trust",
            )
        if address in pins:
            raise RefusedError(
                f"{file}:{number}: {address} has a pin in an earlier line; remove the wrong one",
                code="bmc-trust",
            )
        pins[address] = match[2].replace(":", "").lower()
    return pins
