"""What the SDK of a cloud says about a resource's inputs: their names, their types, and the values that it documents.

The real providers check the same before they call the cloud. Their schemas are not at hand, but the SDKs are generated from
them: each resource has a class of arguments, with a type and a docstring for each.
"""

from __future__ import annotations

import collections.abc
import enum
import importlib
import inspect
import re
import sys
import typing
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType

import pulumi
from pulumi import _types
from pulumi.runtime import rpc

from sandbox.simcloud.values import Properties, Secret, Unknown, Value

_STRICT = "azure-native:"
"""A provider that sends values as they are. Those that wrap Terraform's convert text, numbers and booleans
(pulumi-terraform-bridge, pkg/tfbridge/schema.go)."""
_LISTS = re.compile(
    r"\b(?:(?:valid|possible|allowed|accepted|supported|permitted)\s+(?:values?|options?|choices|types)|must be (?:one of|either)"
    r"|(?:one of|either) (?:the following|`)|can be (?:one of|either|set to))",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\b(?:etc\b|e\.g\.|for example|such as|for instance|see |refer |visit |number|numeric|between|range|arn\b|cidr|regex|pattern"
    r"|format|seconds|minutes|default name|name of|id of|comma|prefix|any |custom)",
    re.IGNORECASE,
)
"""Words of a list of values that is not complete."""
_QUOTED = re.compile(r"`+\"?([^`\"\s]+)\"?`+|\"([^\"\s]+)\"")
_MANY = re.compile(r"[<{]|^\d+$")
"""In words that stand for many values, or that limit a number."""
_END = re.compile(r"\.\s|\n\s*\n")
"""End of the sentence or paragraph that has the list."""
_GROWING = frozenset({"InstanceType", "Region", "LocationName", "VirtualMachineSizeTypes", "PlacementStrategy"})
"""Enumerations to which the cloud adds values all the time, or that lack some (PlacementStrategy has no `partition`)."""


@dataclass(frozen=True)
class Field:
    """An input. type: None for any value. values: texts that are allowed, empty if all are."""

    type: object
    is_required: bool
    values: frozenset[str]


@dataclass(frozen=True)
class Mistake:
    """An input that the SDK does not allow. path: of the property."""

    path: str
    text: str


def mistakes(token: str, inputs: Properties) -> Iterator[Mistake]:
    """Yield what is wrong with a resource's inputs. Yields nothing for a type that no SDK here describes."""
    arguments = _arguments(token)
    if arguments is not None:
        yield from _Reader(not token.startswith(_STRICT)).of_object(arguments, inputs, "")


@cache
def _arguments(token: str) -> type | None:
    """Return the class of a resource's arguments; None if its SDK is not imported or has none."""
    package, module, _ = token.split(":")
    resource_module = rpc.get_resource_module(package, module, "")
    information = getattr(resource_module, "mod_info", None)
    if information is None or token not in information["classes"]:
        return None
    resource = getattr(importlib.import_module(information["fqn"]), information["classes"][token])
    module_ = vars(sys.modules[resource.__module__])
    # The second name is that of another class if the SDK has inputs of this type inside of others.
    arguments = module_.get(f"{resource.__name__}InitArgs") or module_.get(f"{resource.__name__}Args")
    return arguments if isinstance(arguments, type) else None


@cache
def _fields(arguments: type) -> Mapping[str, Field]:
    """Return the inputs of a class of arguments, by their names in the protocol."""
    names = _types.input_type_py_to_pulumi_names(arguments)
    types = _types.input_type_types(arguments)
    parameters = inspect.signature(arguments.__init__).parameters  # type: ignore[misc]
    return {
        name: Field(
            types.get(name),
            parameters[python].default is inspect.Parameter.empty,
            _documented(getattr(arguments, python), names) if types.get(name) is str else frozenset(),
        )
        for python, name in names.items()
        if python in parameters
    }


def _documented(argument: object, siblings: Collection[str]) -> frozenset[str]:
    """Return all texts that an argument's documentation allows, empty if it does not list them completely.

    Every quoted word counts, so a list is rather too long than too short. siblings: the class's arguments; documentation
    that names them is about their combinations.
    """
    text = inspect.getdoc(getattr(argument, "fget", None)) or ""
    match = _LISTS.search(text)
    if match is None:
        return frozenset()
    listed = _END.split(text[match.start() :], maxsplit=1)[0]
    words = _quoted(listed)
    is_complete = not _OPEN.search(listed) and words.isdisjoint(siblings) and not any(map(_MANY.search, words))
    return _quoted(text) if is_complete and len(words) > 1 else frozenset()


def _quoted(text: str) -> frozenset[str]:
    return frozenset(first or second for first, second in _QUOTED.findall(text))


@dataclass(frozen=True)
class _Reader:
    """Compares values with types. coerces: text may be given as a number, and the other way round."""

    coerces: bool

    def of_object(self, arguments: type, value: Value, path: str) -> Iterator[Mistake]:
        if not isinstance(value, dict):
            yield Mistake(path, f"must be an object, not {_kind(value)}")
            return
        fields = _fields(arguments)
        for name in value:
            if name not in fields and not name.startswith("__"):
                yield Mistake(_joined(path, name), f"is not a property; there are: {', '.join(sorted(fields))}")
        for name, field in fields.items():
            if value.get(name) is not None:
                yield from self._of_value(field.type, value[name], _joined(path, name), field.values)
            elif field.is_required:
                yield Mistake(_joined(path, name), "is required")

    def _of_value(
        self, type_: object, value: Value, path: str, values: frozenset[str] = frozenset()
    ) -> Iterator[Mistake]:
        if isinstance(value, Secret):
            if any(self._of_value(type_, value.value, path, values)):
                yield Mistake(path, "has a secret value that its type does not allow")
            return
        if value is None or isinstance(value, Unknown) or type_ in (None, typing.Any):
            return
        choices = _choices(type_)
        if len(choices) > 1:
            yield from self._of_union(choices, value, path)
        elif choices:
            yield from self._of_one(choices[0], value, path, values)

    def _of_union(self, choices: list[object], value: Value, path: str) -> Iterator[Mistake]:
        """Yield the mistakes of the choice that fits best. Text is held to an enumeration, if there is one."""
        enumerations = [choice for choice in choices if _is_enumeration(choice)]
        if isinstance(value, str) and enumerations:
            choices = enumerations
        yield from min((list(self._of_one(choice, value, path, frozenset())) for choice in choices), key=len)

    def _of_one(self, type_: object, value: Value, path: str, values: frozenset[str]) -> Iterator[Mistake]:
        origin = typing.get_origin(type_)
        if type_ is typing.Any:
            return
        if origin in (collections.abc.Sequence, list):
            yield from self._of_list(type_, value, path)
        elif origin in (collections.abc.Mapping, dict):
            yield from self._of_mapping(type_, value, path)
        elif _is_enumeration(type_):
            yield from self._of_enumeration(typing.cast("type[enum.Enum]", type_), value, path)
        elif isinstance(type_, type) and _types.is_input_type(type_):
            yield from self.of_object(type_, value, path)
        elif isinstance(type_, type) and type_ in _PLAIN:
            yield from self._of_plain(type_, value, path, values)

    def _of_list(self, type_: object, value: Value, path: str) -> Iterator[Mistake]:
        if not isinstance(value, list):
            yield Mistake(path, f"must be a list, not {_kind(value)}")
            return
        (of_items,) = typing.get_args(type_)
        for index, item in enumerate(value):
            yield from self._of_value(of_items, item, f"{path}[{index}]")

    def _of_mapping(self, type_: object, value: Value, path: str) -> Iterator[Mistake]:
        if not isinstance(value, dict):
            yield Mistake(path, f"must be a mapping, not {_kind(value)}")
            return
        _, of_values = typing.get_args(type_)
        for key, item in value.items():
            yield from self._of_value(of_values, item, _joined(path, key))

    def _of_enumeration(self, type_: type[enum.Enum], value: Value, path: str) -> Iterator[Mistake]:
        allowed = [member.value for member in type_]
        if value not in allowed and type_.__name__ not in _GROWING:
            yield Mistake(path, f"must be one of {', '.join(map(str, allowed))}, not {value!r}")

    def _of_plain(self, type_: type, value: Value, path: str, values: frozenset[str]) -> Iterator[Mistake]:
        if self.coerces:
            value = _coerced(type_, value)
        fits = isinstance(value, _PLAIN[type_]) and isinstance(value, bool) == (type_ is bool)
        if not fits or (type_ is int and value != int(value)):
            yield Mistake(path, f"must be {_WORDS[type_]}, not {_kind(value)}")
        elif values and value and value not in values:
            yield Mistake(path, f"must be one of {', '.join(sorted(values))}, not {value!r}")


def _choices(type_: object) -> list[object]:
    """Return what an annotation allows, without what only programs can give: outputs, awaitables and typed dictionaries."""
    if typing.get_origin(type_) not in (typing.Union, UnionType):
        return [type_]
    members = [choice for member in typing.get_args(type_) for choice in _choices(member)]
    return [member for member in members if not _is_of_programs(member)]


def _is_of_programs(member: object) -> bool:
    origin = typing.get_origin(member)
    return (
        member is NoneType
        or isinstance(member, typing.ForwardRef)
        or origin in (pulumi.Output, collections.abc.Awaitable)
        or typing.is_typeddict(member)
    )


_PLAIN: Mapping[type, tuple[type, ...]] = {str: (str,), bool: (bool,), int: (int, float), float: (int, float)}
_WORDS = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}


def _coerced(type_: type, value: Value) -> Value:
    """Return the value in its type, if a wrapped provider of Terraform would convert it."""
    if type_ is str and isinstance(value, (bool, int, float)):
        return str(value)
    if isinstance(value, str) and type_ is bool:
        return {"true": True, "false": False}.get(value, value)
    if isinstance(value, str) and type_ in (int, float):
        with suppress(ValueError):
            return float(value)
    return value


def _kind(value: Value) -> str:
    """Return the value, or what it is if it is long, for a message."""
    if isinstance(value, dict):
        return "an object"
    return "a list" if isinstance(value, list) else repr(value)


def _is_enumeration(type_: object) -> bool:
    return isinstance(type_, type) and issubclass(type_, enum.Enum)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
