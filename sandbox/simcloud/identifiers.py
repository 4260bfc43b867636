"""Identifiers that look made up and are the same in every run."""

from __future__ import annotations

import hashlib
import uuid


def digest(seed: str) -> str:
    """64 hexadecimal digits."""
    return hashlib.sha256(seed.encode()).hexdigest()


def guid(seed: str) -> str:
    """A UUID."""
    return str(uuid.UUID(digest(seed)[:32]))


def number(seed: str, digits: int = 19) -> str:
    """A decimal number of `digits` digits."""
    return str(10 ** (digits - 1) + int(digest(seed), 16) % (9 * 10 ** (digits - 1)))
