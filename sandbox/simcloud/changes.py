"""Compare two sets of properties, and match property paths against a table's patterns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from sandbox.simcloud.values import Properties, Value, plain

_SIMPLE = re.compile(r"[A-Za-z_][\w-]*\Z")


class ChangeKind(Enum):
    """What happened to a property."""

    ADD = "add"
    DELETE = "delete"
    UPDATE = "update"


@dataclass(frozen=True)
class PropertyChange:
    """One property that differs. parts: its path, as keys of objects and indices of lists."""

    parts: tuple[str | int, ...]
    kind: ChangeKind
    old: Value
    new: Value

    @property
    def path(self) -> str:
        """The path in the engine's format: ``tags["a.b"]``, ``routes[0].cidrBlock``."""
        text = ""
        for part in self.parts:
            if isinstance(part, int):
                text += f"[{part}]"
            elif _SIMPLE.match(part):
                text += f".{part}" if text else part
            else:
                escaped = part.replace("\\", "\\\\").replace('"', '\\"')
                text += f'["{escaped}"]'
        return text

    def is_within(self, patterns: Iterable[str]) -> bool:
        """Whether the property is at or below one of `patterns`: ``cidrBlock``, ``routes[].cidrBlock``, or ``*``."""
        parts = ["[]" if isinstance(part, int) else part for part in self.parts]
        return any(
            pattern == "*" or parts[: len(prefix)] == prefix
            for pattern in patterns
            for prefix in [pattern.replace("[]", ".[]").split(".")]
        )


def changes(old: Properties, new: Properties) -> list[PropertyChange]:
    """Return all differences, down to single values. Missing, null and empty are equal; secrecy is ignored."""
    return list(_compare((), plain(_visible(old)), plain(_visible(new))))


def _visible(properties: Properties) -> Properties:
    """Return the properties without a provider's internal ones."""
    return {key: value for key, value in properties.items() if not key.startswith("__")}


def _compare(parts: tuple[str | int, ...], old: Value, new: Value) -> Iterator[PropertyChange]:
    if isinstance(old, dict | None) and isinstance(new, dict | None) and (old is not None or new is not None):
        befores, afters = old or {}, new or {}
        for key in sorted({*befores, *afters}):
            yield from _compare((*parts, key), befores.get(key), afters.get(key))
    elif isinstance(old, list | None) and isinstance(new, list | None) and (old is not None or new is not None):
        before, after = old or [], new or []
        for i in range(max(len(before), len(after))):
            yield from _compare(
                (*parts, i), before[i] if i < len(before) else None, after[i] if i < len(after) else None
            )
    elif old != new:
        kind = ChangeKind.ADD if old is None else ChangeKind.DELETE if new is None else ChangeKind.UPDATE
        yield PropertyChange(parts, kind, old, new)
