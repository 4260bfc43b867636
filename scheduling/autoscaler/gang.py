"""Which pods start together or not at all. The one place that knows how pods say so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scheduling.autoscaler.keys import GANG, GANG_SIZE, GANG_WITHIN

_MOST = 100_000


@dataclass(frozen=True)
class Membership:
    """name: the gang's, with its namespace. size: of the whole gang, with members that run. within: see `planner.Gang`."""

    name: str
    size: int
    within: str | None = None


class BadGangError(ValueError):
    """What a pod says of its gang can't be read; the text says what, and the rule."""


def gang_of(pod: Mapping[str, Any]) -> Membership | None:
    """The gang of a pod as the API has it, None for a pod of its own. BadGangError."""
    meta = pod["metadata"]
    notes: Mapping[str, str] = meta.get("annotations") or {}
    name, size = notes.get(GANG), notes.get(GANG_SIZE)
    if name is None:
        if size is not None:
            raise BadGangError(f"{GANG_SIZE} is {size!r}, and {GANG} names no gang")
        return None
    if not name:
        raise BadGangError(f"{GANG} is empty")
    if size is None:
        raise BadGangError(f"{GANG} is {name!r} and {GANG_SIZE} is missing: how many pods start together?")
    if not size.isascii() or not size.isdigit() or not 1 <= int(size) <= _MOST:
        raise BadGangError(f"{GANG_SIZE} is {size!r}; it is a whole number, from 1 to {_MOST:,}")
    return Membership(f"{meta['namespace']}/{name}", int(size), notes.get(GANG_WITHIN) or None)
