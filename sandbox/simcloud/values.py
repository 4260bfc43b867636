"""Convert property values between the engine's wire format and Python.

A value is None, bool, int, float, str, a list or dict of values, `Secret` or `Unknown`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from google.protobuf import struct_pb2

Value = Any
Properties = dict[str, Value]

# Fixed by Pulumi's protocol: sdk/go/common/resource/{properties.go,sig/sig.go} and plugin/rpc.go.
_SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"
_UNKNOWN = frozenset(
    {
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
        "04da6b54-80e4-46f7-96ec-b56ff0331ba9",
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
        "030794c1-ac77-496b-92df-f27374a8bd58",
        "e48ece36-62e2-4504-bad9-02848725956a",
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
    }
)


@dataclass(frozen=True)
class Unknown:
    """A value that is unknown before the update. sentinel: the protocol's constant for its type."""

    sentinel: str = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


@dataclass(frozen=True)
class Secret:
    """A value that the engine encrypts in its state."""

    value: Value


@dataclass(frozen=True)
class Sealed:
    """What a file stores of a secret: enough to recognise it, not enough to reveal it."""

    digest: str


def from_wire(struct: struct_pb2.Struct) -> Properties:
    """Return the properties of a message."""
    return {key: _decoded(value) for key, value in struct.fields.items()}


def to_wire(properties: Properties) -> struct_pb2.Struct:
    """Return a message with these properties."""
    struct = struct_pb2.Struct()
    struct.update(_encoded(properties))
    return struct


def plain(value: Value) -> Value:
    """Return `value` with its secrets unwrapped."""
    if isinstance(value, Secret):
        return plain(value.value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def secret_texts(value: Value) -> set[str]:
    """Return the texts in `value` that are secret."""
    secrets = [part.value for part in _parts(value) if isinstance(part, Secret)]
    return {part for secret in secrets for part in _parts(secret) if isinstance(part, str) and part}


def contains_any(value: Value, secrets: set[str]) -> bool:
    """Whether any of these texts is in `value`."""
    return any(secret in part for part in _parts(value) if isinstance(part, str) for secret in secrets)


def is_known(value: Value) -> bool:
    """Whether every part of `value` is known."""
    return not any(isinstance(part, Unknown) for part in _parts(value))


def sealed(value: Value) -> Value:
    """Return `value` for a file: JSON, with each secret replaced by its digest."""
    if isinstance(value, Secret):
        return {_SIGNATURE: _SECRET, "sha256": _digest(value.value)}
    if isinstance(value, dict):
        return {key: sealed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [sealed(item) for item in value]
    return value


def unsealed(value: Value) -> Value:
    """Return the value that `sealed` wrote, with each secret as `Sealed`."""
    if isinstance(value, dict):
        if value.get(_SIGNATURE) == _SECRET:
            return Secret(Sealed(value["sha256"]))
        return {key: unsealed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [unsealed(item) for item in value]
    return value


def recognised(stored: Value, current: Value) -> Value:
    """Return `stored` with each sealed secret replaced by the value at the same place in `current`, if it is the same."""
    current = current.value if isinstance(current, Secret) else current
    if isinstance(stored, Secret) and isinstance(stored.value, Sealed):
        same = _digest(current) == stored.value.digest
        return Secret(plain(current) if same else f"changed; sha256 {stored.value.digest}")
    if isinstance(stored, dict):
        others = current if isinstance(current, dict) else {}
        return {key: recognised(item, others.get(key)) for key, item in stored.items()}
    if isinstance(stored, list):
        currents = current if isinstance(current, list) else []
        return [recognised(item, currents[i] if i < len(currents) else None) for i, item in enumerate(stored)]
    return stored


def at(value: Value, path: str) -> Iterator[Value]:
    """Yield the values at a path such as ``ipConfigurations[].subnet.id``; nothing when the path does not exist."""
    values = [value]
    for part in path.replace("[]", ".[]").split("."):
        if part == "[]":
            values = [item for items in values if isinstance(items, list) for item in items]
        else:
            values = [item[part] for item in values if isinstance(item, dict) and item.get(part) is not None]
    yield from values


def _decoded(value: struct_pb2.Value) -> Value:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        fields = from_wire(value.struct_value)
        return Secret(fields.get("value")) if fields.get(_SIGNATURE) == _SECRET else fields
    if kind == "list_value":
        return [_decoded(item) for item in value.list_value.values]
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    if kind == "string_value":
        return Unknown(value.string_value) if value.string_value in _UNKNOWN else value.string_value
    return value.bool_value if kind == "bool_value" else None


def _encoded(value: Value) -> Value:
    if isinstance(value, Secret):
        return {_SIGNATURE: _SECRET, "value": _encoded(value.value)}
    if isinstance(value, Unknown):
        return value.sentinel
    if isinstance(value, dict):
        return {key: _encoded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_encoded(item) for item in value]
    return value


def _parts(value: Value) -> Iterator[Value]:
    yield value
    if isinstance(value, Secret):
        yield from _parts(value.value)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _parts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _parts(item)


def _digest(value: Value) -> str:
    if isinstance(value, Sealed):
        return value.digest
    return hashlib.sha256(json.dumps(plain(value), sort_keys=True).encode()).hexdigest()
