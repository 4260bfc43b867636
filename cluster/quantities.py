"""Scalar types of cluster.yaml: byte sizes, durations, addresses, names, ports, folders.

Each accepts the text an operator writes and holds the value a program wants. A refusal is a
``PydanticCustomError`` whose type is the error code (``NET-002``) and whose context may carry
``hint``, the way out; `cluster.refusals` turns it into a `Problem` with file, line and column.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError

# IEC 80000-13 binary prefixes; SI prefixes are left out on purpose, etcd and systemd mean binary.
_BYTE_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_DURATION_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def refuse(code: str, message: str, hint: str, meant: str = "") -> PydanticCustomError:
    """What a parser raises. `meant`: the value that was surely meant; the other rules go on with it."""
    return PydanticCustomError(code, "{message}", {"message": message, "hint": hint, "meant": meant})


def parse_bytes(value: Any) -> Any:
    """``"8GiB"`` -> 8589934592 bytes."""
    if isinstance(value, int) and not isinstance(value, bool):
        raise refuse("CFG-003", f"{value} has no unit", f'write a unit, for example "{value}GiB"')
    found = re.fullmatch(r"([0-9]+) ?([KMGT]iB|B)", value) if isinstance(value, str) else None
    if not found:
        raise refuse("CFG-003", f"{value!r} isn't a size", "write a whole number and KiB, MiB, GiB or TiB: 8GiB")
    return int(found[1]) * _BYTE_UNITS[found[2]]


def format_bytes(value: int) -> str:
    """8589934592 -> ``"8GiB"``: the largest unit that divides it."""
    for unit, factor in reversed(_BYTE_UNITS.items()):
        if value % factor == 0 and value >= factor:
            return f"{value // factor}{unit}"
    return f"{value}B"


def parse_duration_ms(value: Any) -> Any:
    """``"15m"`` -> 900000 milliseconds."""
    found = re.fullmatch(r"([0-9]+)(ms|s|m|h|d)", value) if isinstance(value, str) else None
    if not found:
        raise refuse("CFG-003", f"{value!r} isn't a duration", "write a whole number and ms, s, m, h or d: 15m")
    return int(found[1]) * _DURATION_UNITS_MS[found[2]]


def format_duration_ms(value: int) -> str:
    """900000 -> ``"15m"``: the largest unit that divides it."""
    for unit, factor in reversed(_DURATION_UNITS_MS.items()):
        if value % factor == 0 and value >= factor:
            return f"{value // factor}{unit}"
    return f"{value}ms"


def _without_leading_zeros(text: str) -> str:
    return re.sub(r"\b0+(?=[0-9])", "", text)


def parse_network(value: Any) -> Any:
    """``"10.64.0.0/12"`` -> IPv4Network; host bits and leading zeros are refused.

    Kubernetes 1.36 refuses both too (StrictIPCIDRValidation).
    """
    if isinstance(value, ipaddress.IPv4Network):
        return value
    if not isinstance(value, str) or "/" not in value:
        raise refuse("NET-002", f"{value!r} isn't a range", "write address/prefix, for example 10.64.0.0/12")
    if ":" in value:
        raise refuse(
            "NET-002", f"{value} isn't an IPv4 range, and IPv6 isn't supported", "write one such as 10.64.0.0/12"
        )
    plain = _without_leading_zeros(value)
    if plain != value:
        raise refuse("NET-003", f"{value} has a leading zero", f"write {plain}", plain)
    try:
        loose = ipaddress.IPv4Network(value, strict=False)
    except ValueError as error:
        raise refuse("NET-002", f"{value} isn't an IPv4 range: {error}", "write address/prefix") from None
    if "." in value.partition("/")[2]:
        raise refuse("NET-002", f"{value} has a mask where its length must stand", f"write {loose}", str(loose))
    if str(loose) != value:
        raise refuse("NET-002", f"{value} has host bits set", f"write {loose}", str(loose))
    return loose


def parse_address(value: Any) -> Any:
    """``"10.8.0.17"`` -> IPv4Address; leading zeros are refused."""
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


# RFC 1123 label: what a node name, a host name and a Pulumi stack name all accept.
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_LABEL_RULE = "lower case letters, digits and '-', starting and ending with a letter or digit, at most 63"


def parse_name(value: Any) -> Any:
    """A host, cluster, pool or site name: one RFC 1123 label."""
    if not isinstance(value, str) or not re.fullmatch(_LABEL, value):
        suggestion = re.sub(r"[^a-z0-9-]+", "-", str(value).lower()).strip("-")[:63].strip("-") or "a-name"
        hint = f"write {suggestion}" if isinstance(value, str) else f'quote it: "{suggestion}"'
        raise refuse("CFG-005", f"name {value} isn't valid; use {_LABEL_RULE}", hint)
    return value


def parse_domain(value: Any) -> Any:
    """A DNS domain: RFC 1123 labels with dots between them."""
    if isinstance(value, str) and (len(value) > 253 or not re.fullmatch(rf"{_LABEL}(\.{_LABEL})*", value)):
        raise refuse("CFG-005", f"{value} isn't a DNS domain", "write names with dots between them: cluster.local")
    return value


# The folder itself is given to etcd, so it must not be /usr; a mount unit is named after it.
_DATA_DIR = r"(/[A-Za-z0-9][A-Za-z0-9._-]*){2,}"


def parse_data_dir(value: Any) -> Any:
    """The full path of a folder that an etcd gets whole: plain, and at least two deep."""
    if isinstance(value, str) and not re.fullmatch(_DATA_DIR, value):
        message = f"{value} isn't a plain folder of its own, and etcd is given the whole of it"
        hint = "write a full path at least two deep, of letters, digits, '.', '_' and '-': /data/etcd"
        raise refuse("ETC-003", message, hint)
    return value


def parse_key_path(value: Any) -> Any:
    """A path, and not what is in the file: problems end in terminals and logs, so that is never repeated."""
    if isinstance(value, str) and ("-----" in value or "\n" in value):
        raise refuse("SEC-001", "holds what may be the key itself; a path must stand here", "write ~/.ssh/id_ed25519")
    return value


# Nothing that a shell, a template, iPXE or a kernel's command line would read otherwise.
PLAIN_URL = r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~%+-]+)*"


def parse_without_password(value: Any) -> Any:
    """An address without a user and password before it: every host's user data would show them."""
    if isinstance(value, str) and re.match(r"([a-z]+://)?[^/\s]*@", value):
        hint = "remove what stands before the @; let the mirror know hosts by their addresses"
        raise refuse("SEC-001", "holds a user or password in clear, which every host's user data would show", hint)
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
"""Bytes; RFC 791: what every IPv4 host must take."""
Port = Annotated[int, Field(ge=1, le=65535)]
Domain = Annotated[
    str, BeforeValidator(parse_domain), WithJsonSchema({"type": "string", "pattern": rf"^{_LABEL}(\.{_LABEL})*$"})
]
DataDir = Annotated[
    str, BeforeValidator(parse_data_dir), WithJsonSchema({"type": "string", "pattern": f"^{_DATA_DIR}$"})
]


def parse_sha256(value: Any) -> Any:
    """64 hexadecimal digits, as sha256sum prints them, or with `sha256:` before them, as `crane digest` does."""
    if isinstance(value, str) and (found := re.fullmatch(r"(?:sha256:)?([0-9a-f]{64})", value)):
        return found[1]
    raise refuse("CFG-020", f"{value!r} isn't a SHA-256", "write the 64 hexadecimal digits that sha256sum prints")


def parse_share(value: Any) -> Any:
    """``2`` or ``"10%"``, as text."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if isinstance(text, str) and re.fullmatch(r"[1-9][0-9]{0,5}|([1-9][0-9]?|100)%", text):
        return text
    raise refuse("CFG-003", f"{value!r} is no number of machines and no share", "write 2 or 10%")


def share_of(share: str, total: int, least: int = 1) -> int:
    """How many of `total` a `Share` is: rounded down, and `least` at least."""
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
