"""Limits on the values of a type's properties, as data: a table of each cloud has those of its types.

A limit looks at one resource's inputs, nothing else. What depends on other resources is a rule of the type's own module.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from sandbox.simcloud.rules import Call, Reason, ResourceType
from sandbox.simcloud.values import Properties, Value, at

_SHOWN = 80


@dataclass(frozen=True)
class Excess:
    """A value that its cloud does not take. words: what it takes instead."""

    path: str
    value: Value
    words: str


Limit = Callable[[Properties], Iterator[Excess]]
"""From a resource's inputs to what is wrong with them."""
Condition = Callable[[Properties], object]
"""Whether a limit applies to the object that has the property."""


def between(path: str, least: float, most: float) -> Limit:
    """Limit numbers, and texts that are numbers."""
    return where(path, lambda value: _is_between(value, least, most), f"use {least:.12g} to {most:.12g}")


def shaped(path: str, pattern: str, words: str) -> Limit:
    """Limit texts to those that a regular expression matches as a whole."""
    compiled = re.compile(pattern, re.ASCII | re.DOTALL)
    return where(path, lambda value: compiled.fullmatch(str(value)), words)


def one_of(path: str, *allowed: object) -> Limit:
    """Limit values to a list."""
    return where(path, lambda value: value in allowed, f"use one of {', '.join(map(str, allowed))}")


def where(path: str, fits: Callable[[Value], object], words: str) -> Limit:
    """Limit values to those for which `fits` is true."""
    return lambda inputs: (Excess(path, value, words) for value in at(inputs, path) if not fits(value))


def longest(path: str, most: int) -> Limit:
    """Limit the characters of a text."""
    return where(path, lambda value: len(str(value)) <= most, f"use at most {most} characters")


def most(path: str, number: int) -> Limit:
    """Limit the items of a list or mapping."""
    return where(path, lambda value: len(value) <= number, f"give at most {number}")


def distinct(path: str) -> Limit:
    """Limit the values at a path to different ones."""

    def limit(inputs: Properties) -> Iterator[Excess]:
        earlier: list[Value] = []
        for value in at(inputs, path):
            if value in earlier:
                yield Excess(path, value, "give each once")
            earlier.append(value)

    return limit


def only_if(path: str, condition: Condition, words: str) -> Limit:
    """Limit a property to objects that fulfil a condition. words: the condition."""
    return _of_holders(path, lambda holder, name: _is_set(holder.get(name)) and not condition(holder), words)


def needed_if(path: str, condition: Condition, words: str) -> Limit:
    """Require a property of objects that fulfil a condition. words: the condition."""
    return _of_holders(path, lambda holder, name: not _is_set(holder.get(name)) and condition(holder), words)


def has(name: str, *values: Value) -> Condition:
    """Return a condition: the object's property `name` has one of these values, or any if there are none."""
    return lambda holder: holder.get(name) in values if values else _is_set(holder.get(name))


def limited(type_: ResourceType, table: Mapping[str, Iterable[Limit]]) -> ResourceType:
    """Return the type with its limits of the table, after its own rules."""
    limits = tuple(table.get(type_.token, ()))
    return replace(type_, refuse=(*type_.refuse, lambda call: _check(call, limits))) if limits else type_


def _check(call: Call, limits: Iterable[Limit]) -> None:
    for limit in limits:
        for excess in limit(call.inputs):
            value = (
                excess.value
                if isinstance(excess.value, (str, int, float, bool))
                else ""
                if excess.value is None
                else "…"
            )
            raise call.refusal(
                Reason.BAD_VALUE,
                property_=excess.path,
                path=excess.path,
                value=str(value)[:_SHOWN],
                words=excess.words,
            )


def _of_holders(path: str, is_wrong: Callable[[Properties, str], object], words: str) -> Limit:
    before, _, name = path.rpartition(".")

    def limit(inputs: Properties) -> Iterator[Excess]:
        for holder in at(inputs, before) if before else (inputs,):
            if isinstance(holder, dict) and is_wrong(holder, name):
                yield Excess(path, holder.get(name), words)

    return limit


def _is_set(value: Value) -> bool:
    return value not in (None, "", [], {}, False)


def _is_between(value: Value, least: float, most: float) -> bool:
    try:
        return least <= float(value) <= most
    except (TypeError, ValueError):
        return False
