"""Names of a cloud's resources that would be longer than the cloud takes."""

from __future__ import annotations

import hashlib

DIGITS = 7
"""Of a hash, in a name: one clash in 16,000 names of one beginning (the birthday bound of 16^7)."""


def short(text: str, longest: int, digits: int = DIGITS) -> str:
    """`text`, or its beginning and as many digits of its hash. It ends in no two hyphens."""
    if len(text) <= longest:
        return text
    return f"{text[: longest - digits - 1].rstrip('-')}-{hashed(text, digits)}"


def hashed(text: str, digits: int = DIGITS) -> str:
    """The beginning of a text's SHA-256, in hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()[:digits]
