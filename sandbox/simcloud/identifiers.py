"""Deterministic identifiers that look random."""

from __future__ import annotations

import hashlib
import uuid


def digest(seed: str) -> str:
    """Return 64 hexadecimal digits."""
    return hashlib.sha256(seed.encode()).hexdigest()


def guid(seed: str) -> str:
    """Return a UUID."""
    return str(uuid.UUID(digest(seed)[:32]))


def number(seed: str, digits: int = 19) -> str:
    """Return a decimal number of `digits` digits."""
    return str(10 ** (digits - 1) + int(digest(seed), 16) % (9 * 10 ** (digits - 1)))
