"""Replaces machines' keys in the text of an SSH known_hosts file (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT). Pure."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping

KEY_TYPE = "ssh-ed25519"
_HASHED = "|1|"
_TYPE = re.compile(rb"(ssh|ecdsa|sk)-[a-z0-9@.-]+|[0-9]+")
"""Type of a key. In SSH 1, the number of bits is in its place."""


def _is_known_hosts(data: bytes) -> bool:
    """Return whether each line is empty, a comment, or an optional marker followed by names, a type and a key."""
    lines = (line.split() for line in data.splitlines() if line.strip() and not line.lstrip().startswith(b"#"))
    return all(
        len(fields := words[1:] if words[0].startswith(b"@") else words) > 2 and _TYPE.fullmatch(fields[1])
        for words in lines
    )


KIND = ("a list of known hosts (sshd(8))", _is_known_hosts)
"""The kind of file that may be replaced, and the check that recognises it."""


def parse_key(line: str) -> str | None:
    """Return ``ssh-ed25519 AAAA…`` from a line of a .pub file, without its comment; None if it is something else."""
    words = line.split()
    if len(words) < 2 or words[0] != KEY_TYPE:
        return None
    try:
        raw = base64.b64decode(words[1], validate=True)
    except binascii.Error:
        return None
    # RFC 8709: the name of the type and 32 bytes, each preceded by its length.
    head = len(KEY_TYPE).to_bytes(4, "big") + KEY_TYPE.encode() + (32).to_bytes(4, "big")
    return f"{words[0]} {words[1]}" if raw.startswith(head) and len(raw) == len(head) + 32 else None


def replaced(text: str, keys: Mapping[str, str]) -> str:
    """Return `text` with exactly this key for each of these hosts (``10.8.1.11``, ``[10.8.1.11]:2222``).

    In lines with several names, only these names are removed. Lines with authorities and revoked keys (@) stay.
    """
    kept = [line for old in text.splitlines() if (line := _without(old, keys)) is not None]
    return "".join(f"{line}\n" for line in [*kept, *(f"{host} {key}" for host, key in keys.items())])


def _without(line: str, keys: Mapping[str, str]) -> str | None:
    """Return the line without these names, None if no name is left."""
    names, _, rest = line.partition(" ")
    if not rest or names.startswith(("#", "@")):
        return line
    left = list(_left(names, keys))
    return f"{','.join(left)} {rest}" if left else None


def _left(names: str, keys: Mapping[str, str]) -> Iterator[str]:
    for name in names.split(","):
        if not (name in keys or (name.startswith(_HASHED) and any(_is_hash_of(name, host) for host in keys))):
            yield name


def _is_hash_of(name: str, host: str) -> bool:
    """Return whether a hashed name is that of a host.

    HashKnownHosts, Debian's default: ``|1|salt|HMAC-SHA1 of the name with the salt as its key``, in base64.
    """
    try:
        salt, digest = (base64.b64decode(part, validate=True) for part in name.removeprefix(_HASHED).split("|"))
    except (binascii.Error, ValueError):
        return False
    return hmac.compare_digest(hmac.new(salt, host.encode(), hashlib.sha1).digest(), digest)
