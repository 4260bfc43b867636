"""Compares an object with its desired state: fields that are missing or different, and fields of ours no longer desired. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kubernetes.utils.quantity import parse_quantity

from controllers.tenancy.sync.objects import MANAGED_LABEL, MANAGER, Object

_ATOMIC = {"roleRef", "matchConstraints"}
"""Mappings that are owned as a whole (x-kubernetes-map-type: atomic)."""
_QUANTITIES = {"hard", "max", "default", "defaultRequest"}
_Path = tuple[str, ...]


def differences(desired: Object, actual: Object) -> list[str]:
    """Return the differences in words; empty if an apply would change nothing."""
    leaves = dict(_leaves(desired))
    changed = []
    for path, desired_value in leaves.items():
        actual_value = _at(actual, path)
        if not _same(actual_value, desired_value, path):
            changed.append(f"{'.'.join(path)} is {_shown(actual_value)}, not {_shown(desired_value)}")
    stale = sorted(owned(actual) - leaves.keys())
    return changed + [f"{'.'.join(path)} is no longer desired" for path in stale if _at(actual, path) is not None]


def owned(actual: Object) -> set[_Path]:
    """Return the paths of the fields that our field manager owns on the server; mappings only, not items of lists."""
    paths: set[_Path] = set()
    for entry in actual["metadata"].get("managedFields") or ():
        if entry["manager"] == MANAGER and entry["operation"] == "Apply":
            paths |= set(_fields(entry.get("fieldsV1") or {}, ()))
    return paths


def is_ours(actual: Object) -> bool:
    """Whether we have ever applied the object, or its label hands it to us: managedFields don't survive every copy."""
    if (actual["metadata"].get("labels") or {}).get(MANAGED_LABEL) == MANAGER:
        return True
    entries = actual["metadata"].get("managedFields") or ()
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
            subfields = [each for each in inner if each.startswith("f:")] if key[2:] not in _ATOMIC else []
            # An empty mapping of ours is not a leaf: it holds no owned field.
            if subfields:
                yield from _fields(inner, here)
            elif not inner or set(inner) != {"."}:
                yield here


def _at(value: Any, path: _Path) -> Any:
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _same(actual: Any, desired: Any, path: _Path) -> bool:
    """Whether two values are equal. Quantities are compared by amount: the API server writes 1000m as 1. A missing list equals an empty one."""
    if isinstance(desired, list):
        items = actual or []
        return len(items) == len(desired) and all(
            _same(one, other, path) for one, other in zip(items, desired, strict=True)
        )
    if desired == {}:
        return True
    if isinstance(desired, Mapping):
        return (
            isinstance(actual, Mapping)
            and actual.keys() == desired.keys()
            and all(_same(actual[key], desired[key], (*path, key)) for key in desired)
        )
    if actual is not None and _QUANTITIES & {*path[:-1]}:
        try:
            return bool(parse_quantity(actual) == parse_quantity(desired))
        except ValueError:
            return False
    return bool(actual == desired)


def _shown(value: Any) -> str:
    if value is None:
        return "missing"
    if isinstance(value, list):
        return f"[{', '.join(str(each.get('name', each)) for each in value)}]"
    return str(value.get("name", value)) if isinstance(value, Mapping) else str(value)
