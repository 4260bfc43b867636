"""The text of an SSH known_hosts file with machines' new keys in it (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT). Pure."""

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
"""Of a key; SSH 1 had its bits there."""


def _is_one(data: bytes) -> bool:
    """Whether each line is empty, a comment, or names, a type and a key, with or without a marker before them."""
    lines = (line.split() for line in data.splitlines() if line.strip() and not line.lstrip().startswith(b"#"))
    return all(
        len(own := words[1:] if words[0].startswith(b"@") else words) > 2 and _TYPE.fullmatch(own[1]) for words in lines
    )


KIND = ("a list of known hosts (sshd(8))", _is_one)
"""What is replaced, and how it is told from other files."""


def parse_key(line: str) -> str | None:
    """``ssh-ed25519 AAAA…`` of a .pub file without its comment, None where it is something else."""
    words = line.split()
    if len(words) < 2 or words[0] != KEY_TYPE:
        return None
    try:
        raw = base64.b64decode(words[1], validate=True)
    except binascii.Error:
        return None
    # RFC 8709: the name of the type and 32 bytes, each with its length before it.
    head = len(KEY_TYPE).to_bytes(4, "big") + KEY_TYPE.encode() + (32).to_bytes(4, "big")
    return f"{words[0]} {words[1]}" if raw.startswith(head) and len(raw) == len(head) + 32 else None


def replaced(text: str, keys: Mapping[str, str]) -> str:
    """`text` where each of these hosts (``10.8.1.11``, ``[10.8.1.11]:2222``) has this key and no other.

    Of a line that names others too, only these names are taken out. Lines of authorities and revoked keys (@) stay.
    """
    kept = [line for old in text.splitlines() if (line := _without(old, keys)) is not None]
    return "".join(f"{line}\n" for line in [*kept, *(f"{host} {key}" for host, key in keys.items())])


def _without(line: str, keys: Mapping[str, str]) -> str | None:
    """The line without these names, None where no name is left."""
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
    """HashKnownHosts, Debian's default: ``|1|salt|HMAC-SHA1 of the name with the salt as its key``, in base64."""
    try:
        salt, digest = (base64.b64decode(part, validate=True) for part in name.removeprefix(_HASHED).split("|"))
    except (binascii.Error, ValueError):
        return False
    return hmac.compare_digest(hmac.new(salt, host.encode(), hashlib.sha1).digest(), digest)
