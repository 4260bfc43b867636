"""Who BMCs are to us, and who we are to them: certificates that are vouched for, and a login."""

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
    """What opens a BMC."""

    user: str
    password: str = field(repr=False)

    @classmethod
    def parse(cls, secret: str, name: str) -> Login:
        """From ``user:password``; the password may hold more colons. What is wrong is never repeated."""
        user, colon, password = secret.strip("\r\n").partition(":")
        if not (user and colon and password):
            raise RefusedError(
                f"the secret {name} isn't user:password; store it again with: ./menagerie secret", code="bmc-trust"
            )
        return cls(user, password)


@dataclass(frozen=True)
class Trust:
    """One of the two: the authority that signed all certificates, or the SHA-256 of each BMC's own."""

    ca: Path | None = None
    pins: Mapping[IPv4Address, str] = field(default_factory=dict)

    @classmethod
    def load(cls, bmcs: Bmcs, folder: Path) -> Trust:
        """As the spec says; its files lie in `folder`."""
        name = bmcs.ca or bmcs.pins or ""
        path = folder / name
        try:
            text = read_text(path)
        except UnreadableError as error:
            raise RefusedError(
                f"{path} can't be read ({error.reason}), and BMCs are verified by it; docs/how-to/provisioning.md says how to make it",
                code="bmc-trust",
            ) from None
        if not bmcs.ca:
            return cls(pins=parse_pins(text, str(path)))
        if "-----BEGIN CERTIFICATE-----" not in text:
            raise RefusedError(f"{path} holds no certificate in PEM", code="bmc-trust")
        return cls(ca=path)


def parse_pins(text: str, file: str) -> dict[IPv4Address, str]:
    """Address -> 64 hex digits. A line each, ``10.9.254.11 sha256:ab12…``; # begins a comment."""
    found: dict[IPv4Address, str] = {}
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
        if address in found:
            raise RefusedError(
                f"{file}:{number}: {address} has a pin above already; remove the one that isn't its own",
                code="bmc-trust",
            )
        found[address] = match[2].replace(":", "").lower()
    return found
