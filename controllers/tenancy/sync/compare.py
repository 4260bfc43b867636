"""What keeps an object from being as it is wanted: fields that are missing or others, and fields of ours that nobody wants. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cluster.tenancy import amount
from controllers.tenancy.sync.objects import MANAGED_LABEL, MANAGER, Object

_ATOMIC = {"roleRef", "matchConstraints"}
"""Mappings that have one owner as a whole (x-kubernetes-map-type: atomic)."""
_QUANTITIES = {"hard", "max", "default", "defaultRequest"}
_Path = tuple[str, ...]


def differences(wanted: Object, seen: Object) -> list[str]:
    """Each in words; nothing where applying would change nothing."""
    leaves = dict(_leaves(wanted))
    found = []
    for path, value in leaves.items():
        there = _at(seen, path)
        if not _same(there, value, path):
            found.append(f"{'.'.join(path)} is {_said(there)}, not {_said(value)}")
    stale = sorted(owned(seen) - leaves.keys())
    return found + [f"{'.'.join(path)} is no longer wanted" for path in stale if _at(seen, path) is not None]


def owned(seen: Object) -> set[_Path]:
    """The fields that are ours on the server, as far as mappings go."""
    found: set[_Path] = set()
    for entry in seen["metadata"].get("managedFields") or ():
        if entry["manager"] == MANAGER and entry["operation"] == "Apply":
            found |= set(_fields(entry.get("fieldsV1") or {}, ()))
    return found


def is_ours(seen: Object) -> bool:
    """Whether it was ever applied by us, or given over to us by its label: managedFields don't survive every copy."""
    if (seen["metadata"].get("labels") or {}).get(MANAGED_LABEL) == MANAGER:
        return True
    entries = seen["metadata"].get("managedFields") or ()
    return any(entry["manager"] == MANAGER and entry["operation"] == "Apply" for entry in entries)


def _leaves(value: Mapping[str, Any], path: _Path = ()) -> Iterator[tuple[_Path, Any]]:
    for key, inner in value.items():
        here = (*path, key)
        if here in (("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace")):
            continue
        if isinstance(inner, Mapping) and inner and key not in _ATOMIC:
            yield from _leaves(inner, here)
        else:
            yield here, inner


def _fields(fields: Mapping[str, Any], path: _Path) -> Iterator[_Path]:
    for key, inner in fields.items():
        if key.startswith("f:"):
            here = (*path, key[2:])
            deeper = [each for each in inner if each.startswith("f:")] if key[2:] not in _ATOMIC else []
            # An empty mapping of ours is no leaf: nothing in it is anybody's.
            if deeper:
                yield from _fields(inner, here)
            elif not inner or set(inner) != {"."}:
                yield here


def _at(value: Any, path: _Path) -> Any:
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _same(there: Any, value: Any, path: _Path) -> bool:
    """Equal; quantities by what they are, for the API server writes 1000m as 1. An empty list may be left out."""
    if isinstance(value, list):
        given = there or []
        return len(given) == len(value) and all(
            _same(one, other, path) for one, other in zip(given, value, strict=True)
        )
    if value == {}:
        return True
    if isinstance(value, Mapping):
        return (
            isinstance(there, Mapping)
            and there.keys() == value.keys()
            and all(_same(there[key], value[key], (*path, key)) for key in value)
        )
    if there is not None and _QUANTITIES & {*path[:-1]}:
        try:
            return amount(str(there)) == amount(str(value))
        except ValueError:
            return False
    return bool(there == value)


def _said(value: Any) -> str:
    if value is None:
        return "missing"
    if isinstance(value, list):
        return f"[{', '.join(str(each.get('name', each)) for each in value)}]"
    return str(value.get("name", value)) if isinstance(value, Mapping) else str(value)
