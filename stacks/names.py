"""Shortens names of cloud resources that would exceed the cloud's limit."""

from __future__ import annotations

import hashlib

DIGITS = 7
"""Of a hash, in a name: one collision in 16,000 names with the same prefix (the birthday bound of 16^7)."""


def short(text: str, longest: int, digits: int = DIGITS) -> str:
    """Return `text`, or its prefix, a hyphen and digits of its hash. Strips hyphens from the end of the prefix."""
    if len(text) <= longest:
        return text
    return f"{text[: longest - digits - 1].rstrip('-')}-{hashed(text, digits)}"


def hashed(text: str, digits: int = DIGITS) -> str:
    """Return the first hexadecimal digits of a text's SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:digits]
