"""Reading properties: paths into them, hidden values, and references between resources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from stacks.policies.model import SECRET, Resource

# Pulumi's protocol: sdk/go/common/resource/plugin/rpc.go. Placeholders for values that a preview cannot know.
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
# sdk/go/common/resource/{properties.go,sig/sig.go}: the marker of a secret.
_SIGNATURE, _SECRET = "4dabf18193072939515e22adb298388d", "1b47061264138c4ac30d75fd1eb44270"
_IDENTITIES = (
    *("id", "arn", "name", "selfLink", "keyId", "keyUri", "keyUriWithVersion", "bucket", "allocationId"),
    *("targetKeyArn", "email", "uniqueId"),
)


def at(value: Any, path: str) -> Iterator[Any]:
    """Yield the values at a path, such as ``disks[].key``: one for each element of a list; none if there is nothing.

    "" is the value itself. A hidden value stands for everything below it.
    """
    if not path or is_hidden(value):
        yield value
        return
    name, _, rest = path.partition(".")
    inner = value.get(name.removesuffix("[]")) if isinstance(value, Mapping) else None
    if name.endswith("[]") and isinstance(inner, list):
        for element in inner:
            yield from at(element, rest)
    elif inner is not None:
        yield from at(inner, rest)


def first(value: Any, *paths: str) -> Any:
    """Return the first value at any of the paths; None if there is none."""
    return next((value_ for path in paths for value_ in at(value, path)), None)


def text(value: Any, *paths: str) -> str:
    value_ = first(value, *paths)
    return value_ if isinstance(value_, str) else ""


def is_hidden(value: Any) -> bool:
    """Whether a value exists but can't be read: encrypted, or known only after an update.

    It satisfies rules that require a value, and never violates rules that forbid one.
    """
    return isinstance(value, str) and (value == SECRET or value in _UNKNOWN)


def shown(value: Any) -> Any:
    """Return a value as the engine stores or sends it, with `SECRET` for secrets and without the engine's own notes."""
    if isinstance(value, Mapping):
        if value.get(_SIGNATURE) == _SECRET:
            return SECRET
        return {key: shown(inner) for key, inner in value.items() if not key.startswith("__")}
    return [shown(inner) for inner in value] if isinstance(value, list) else value


def is_on(value: Any) -> bool:
    """Whether a value is true. Launch templates of AWS use "true" for true."""
    return value is True or value == "true"


def names_of(resource: Resource) -> set[str]:
    """Return the names by which other resources may refer to a resource, in lower case."""
    identifiers = [
        value for name in _IDENTITIES for source in (resource.outputs, resource.inputs) for value in at(source, name)
    ]
    if resource.type == "gcp:kms/cryptoKey:CryptoKey":
        identifiers.append(f"{text(resource.inputs, 'keyRing')}/cryptoKeys/{text(resource.inputs, 'name')}")
    if resource.type == "gcp:compute/address:Address":
        identifiers += at(resource.outputs, "address")
    return {str(value).lower() for value in identifiers if value and not is_hidden(value)}


def is_one_of(value: Any, names: Iterable[str]) -> bool:
    """Whether a value refers to one of `names`: as such, at the end of a link, or as a version of it."""
    if is_hidden(value):
        return True
    given = str(value).lower()
    return any(given == name or given.endswith(f"/{name}") or given.startswith(f"{name}/") for name in names)


def of_types(resources: Iterable[Resource], types: Iterable[str]) -> list[Resource]:
    types_ = frozenset(types)
    return [resource for resource in resources if resource.type in types_]
