"""Scalar types of cluster.yaml: byte sizes, durations, addresses, names, ports, folders.

Each accepts the text that an operator writes and has the value that programs need. A refusal is a
``PydanticCustomError`` whose type is the error code (``NET-002``) and whose context may have a ``hint``;
`cluster.refusals` turns it into a `Problem` with file, line and column.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError

# IEC 80000-13 binary prefixes. There are no SI prefixes on purpose: etcd and systemd use binary ones.
_BYTE_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_DURATION_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

GIB = _BYTE_UNITS["GiB"]
DAY_MS = _DURATION_UNITS_MS["d"]


def whole_gib(size: int) -> int:
    """Return a size in bytes as GiB, rounded up: clouds sell disks in whole GiB."""
    return -(-size // GIB)


def whole_days(duration_ms: int) -> int:
    """Return a duration in milliseconds as days, rounded up: clouds count retention in whole days."""
    return -(-duration_ms // DAY_MS)


def refuse(code: str, message: str, hint: str, meant: str = "") -> PydanticCustomError:
    """Return the error for a parser to raise. meant: the obviously intended value, with which other rules continue."""
    return PydanticCustomError(code, "{message}", {"message": message, "hint": hint, "meant": meant})


def parse_bytes(value: Any) -> Any:
    """Parse ``"8GiB"`` -> 8589934592 bytes."""
    if isinstance(value, int) and not isinstance(value, bool):
        raise refuse("CFG-003", f"{value} has no unit", f'write a unit, for example "{value}GiB"')
    match = re.fullmatch(r"([0-9]+) ?([KMGT]iB|B)", value) if isinstance(value, str) else None
    if not match:
        raise refuse(
            "CFG-003", f"{value!r} isn't a size", "write a whole number and KiB, MiB, GiB or TiB, for example 8GiB"
        )
    return int(match[1]) * _BYTE_UNITS[match[2]]


def format_bytes(value: int) -> str:
    """Format 8589934592 -> ``"8GiB"``, with the largest unit that divides it."""
    for unit, factor in reversed(_BYTE_UNITS.items()):
        if value % factor == 0 and value >= factor:
            return f"{value // factor}{unit}"
    return f"{value}B"


def parse_duration_ms(value: Any) -> Any:
    """Parse ``"15m"`` -> 900000 milliseconds."""
    match = re.fullmatch(r"([0-9]+)(ms|s|m|h|d)", value) if isinstance(value, str) else None
    if not match:
        raise refuse(
            "CFG-003", f"{value!r} isn't a duration", "write a whole number and ms, s, m, h or d, for example 15m"
        )
    return int(match[1]) * _DURATION_UNITS_MS[match[2]]


def format_duration_ms(value: int) -> str:
    """Format 900000 -> ``"15m"``, with the largest unit that divides it."""
    for unit, factor in reversed(_DURATION_UNITS_MS.items()):
        if value % factor == 0 and value >= factor:
            return f"{value // factor}{unit}"
    return f"{value}ms"


def _without_leading_zeros(text: str) -> str:
    return re.sub(r"\b0+(?=[0-9])", "", text)


def parse_network(value: Any) -> Any:
    """Parse ``"10.64.0.0/12"`` -> IPv4Network. Refuses host bits and leading zeros.

    Kubernetes 1.36 refuses both too (StrictIPCIDRValidation).
    """
    if isinstance(value, ipaddress.IPv4Network):
        return value
    if not isinstance(value, str) or "/" not in value:
        raise refuse("NET-002", f"{value!r} isn't a range", "write address/prefix, for example 10.64.0.0/12")
    if ":" in value:
        raise refuse(
            "NET-002",
            f"{value} isn't an IPv4 range, and IPv6 isn't supported",
            "write an IPv4 range, for example 10.64.0.0/12",
        )
    plain = _without_leading_zeros(value)
    if plain != value:
        raise refuse("NET-003", f"{value} has a leading zero", f"write {plain}", plain)
    try:
        loose = ipaddress.IPv4Network(value, strict=False)
    except ValueError as error:
        raise refuse("NET-002", f"{value} isn't an IPv4 range: {error}", "write address/prefix") from None
    if "." in value.partition("/")[2]:
        raise refuse("NET-002", f"{value} has a netmask instead of a prefix length", f"write {loose}", str(loose))
    if str(loose) != value:
        raise refuse("NET-002", f"{value} has host bits set", f"write {loose}", str(loose))
    return loose


def parse_address(value: Any) -> Any:
    """Parse ``"10.8.0.17"`` -> IPv4Address. Refuses leading zeros."""
    if isinstance(value, ipaddress.IPv4Address):
        return value
    if not isinstance(value, str):
        raise refuse("NET-003", f"{value!r} isn't an address", "write an IPv4 address, for example 10.8.0.17")
    plain = _without_leading_zeros(value)
    if plain != value:
        raise refuse("NET-003", f"{value} has a leading zero", f"write {plain}", plain)
    try:
        return ipaddress.IPv4Address(value)
    except ValueError as error:
        raise refuse("NET-003", f"{value} isn't an IPv4 address: {error}", "write four numbers, 0 to 255") from None


# RFC 1123 label: valid as the name of a node, a host and a Pulumi stack.
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_LABEL_RULE = "lower case letters, digits and '-', starting and ending with a letter or digit, at most 63"


def parse_name(value: Any) -> Any:
    """Validate the name of a host, cluster, pool or site: one RFC 1123 label."""
    if not isinstance(value, str) or not re.fullmatch(_LABEL, value):
        suggestion = re.sub(r"[^a-z0-9-]+", "-", str(value).lower()).strip("-")[:63].strip("-") or "a-name"
        hint = f"write {suggestion}" if isinstance(value, str) else f'quote it: "{suggestion}"'
        raise refuse("CFG-005", f"name {value} isn't valid; use {_LABEL_RULE}", hint)
    return value


def parse_domain(value: Any) -> Any:
    """Validate a DNS domain: RFC 1123 labels separated by dots."""
    if isinstance(value, str) and (len(value) > 253 or not re.fullmatch(rf"{_LABEL}(\.{_LABEL})*", value)):
        raise refuse(
            "CFG-005", f"{value} isn't a DNS domain", "write names separated by dots, for example cluster.local"
        )
    return value


# etcd owns the folder itself, so it must not be /usr; a mount unit is named after it.
_DATA_DIR = r"(/[A-Za-z0-9][A-Za-z0-9._-]*){2,}"


def parse_data_dir(value: Any) -> Any:
    """Validate the full path of a folder that an etcd owns: plain, and at least two levels deep."""
    if isinstance(value, str) and not re.fullmatch(_DATA_DIR, value):
        message = f"{value} isn't a plain separate folder, which etcd can own as a whole"
        hint = (
            "write a full path at least two levels deep, with letters, digits, '.', '_' and '-', for example /data/etcd"
        )
        raise refuse("ETC-003", message, hint)
    return value


def parse_key_path(value: Any) -> Any:
    """Validate a path. Refuses the content of a key without repeating it: messages go to terminals and logs."""
    if isinstance(value, str) and ("-----" in value or "\n" in value):
        raise refuse(
            "SEC-001",
            "may contain the key itself; it must be a path",
            "write the path of the key, for example ~/.ssh/id_ed25519",
        )
    return value


# No characters that a shell, a template, iPXE or a kernel command line could interpret.
PLAIN_URL = r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~%+-]+)*"


def parse_without_password(value: Any) -> Any:
    """Refuse an address with a user and password, which would be visible in every host's user data."""
    if isinstance(value, str) and re.match(r"([a-z]+://)?[^/\s]*@", value):
        hint = "remove everything before the @; the mirror can identify hosts by their addresses"
        raise refuse("SEC-001", "contains a user or password in clear text, visible in every host's user data", hint)
    return value


Bytes = Annotated[
    int,
    BeforeValidator(parse_bytes),
    PlainSerializer(format_bytes),
    WithJsonSchema({"type": "string", "pattern": r"^\d+ ?([KMGT]iB|B)$", "examples": ["8GiB"]}),
]
DurationMs = Annotated[
    int,
    BeforeValidator(parse_duration_ms),
    PlainSerializer(format_duration_ms),
    WithJsonSchema({"type": "string", "pattern": r"^\d+(ms|s|m|h|d)$", "examples": ["15m"]}),
]
Network = Annotated[
    ipaddress.IPv4Network,
    BeforeValidator(parse_network),
    PlainSerializer(str),
    WithJsonSchema({"type": "string", "format": "ipv4network", "examples": ["10.64.0.0/12"]}),
]
Address = Annotated[
    ipaddress.IPv4Address,
    BeforeValidator(parse_address),
    PlainSerializer(str),
    WithJsonSchema({"type": "string", "format": "ipv4", "examples": ["10.8.0.17"]}),
]
Name = Annotated[str, BeforeValidator(parse_name), WithJsonSchema({"type": "string", "pattern": f"^{_LABEL}$"})]
SMALLEST_MTU = 576
"""In bytes: what every IPv4 host must accept (RFC 791)."""
Port = Annotated[int, Field(ge=1, le=65535)]
Domain = Annotated[
    str, BeforeValidator(parse_domain), WithJsonSchema({"type": "string", "pattern": rf"^{_LABEL}(\.{_LABEL})*$"})
]
DataDir = Annotated[
    str, BeforeValidator(parse_data_dir), WithJsonSchema({"type": "string", "pattern": f"^{_DATA_DIR}$"})
]


def parse_sha256(value: Any) -> Any:
    """Parse 64 hexadecimal digits as sha256sum prints them, or with the prefix `sha256:` as in `crane digest`."""
    if isinstance(value, str) and (match := re.fullmatch(r"(?:sha256:)?([0-9a-f]{64})", value)):
        return match[1]
    raise refuse("CFG-020", f"{value!r} isn't a SHA-256", "write the 64 hexadecimal digits that sha256sum prints")


def parse_share(value: Any) -> Any:
    """Parse ``2`` or ``"10%"``. Returns text."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if isinstance(text, str) and re.fullmatch(r"[1-9][0-9]{0,5}|([1-9][0-9]?|100)%", text):
        return text
    raise refuse(
        "CFG-003",
        f"{value!r} is neither a number of machines nor a share",
        "write a number or a percentage, for example 2 or 10%",
    )


def share_of(share: str, total: int, least: int = 1) -> int:
    """Return how many of `total` a `Share` is, rounded down, but at least `least`."""
    number = int(share.rstrip("%"))
    return max(total * number // 100 if share.endswith("%") else number, least)


Share = Annotated[
    str,
    BeforeValidator(parse_share),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": r"^\d+%$"}]}),
]
Sha256 = Annotated[
    str, BeforeValidator(parse_sha256), WithJsonSchema({"type": "string", "pattern": "^(sha256:)?[0-9a-f]{64}$"})
]
