"""Which keys a model has at a path, and which key a wrong one was probably meant to be."""

from __future__ import annotations

import difflib
import types
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from cluster.document import Where, show

# Below difflib's default of 0.6, so that pod_cidr finds pods. There are few keys, and a wrong guess does no harm.
_LIKENESS = 0.5
_LONGEST_WORD = 100
MOST_COMPARED = 50_000
"""Pairs of words compared for one report, which takes half a second. Only its first problems get suggestions."""

_left: ContextVar[list[int] | None] = ContextVar("_left", default=None)


@contextmanager
def few_guesses() -> Iterator[None]:
    """Limit suggestions within the block to `MOST_COMPARED` compared pairs."""
    token = _left.set([MOST_COMPARED])
    try:
        yield
    finally:
        _left.reset(token)


def near(word: str, known: Collection[str]) -> list[str]:
    """Return up to two known words most similar to `word`, best first. Empty once too many were compared."""
    if not known or len(word) > _LONGEST_WORD or not _may_compare(len(known)):
        return []
    by_lower = {name.lower(): name for name in known}
    matches = difflib.get_close_matches(word.lower(), list(by_lower), n=2, cutoff=_LIKENESS)
    return [by_lower[name] for name in matches]


def _may_compare(pairs: int) -> bool:
    left = _left.get()
    if left is not None:
        left[0] -= pairs
    return left is None or left[0] >= 0


def did_you_mean(word: str, known: Collection[str]) -> str:
    """Return ``; did you mean pods?``, or an empty string if no known word is similar."""
    matches = near(word, known)
    return f"; did you mean {' or '.join(matches)}?" if matches else ""


def unknown(kind: str, words: Iterable[str], known: Collection[str]) -> str:
    """Return a line ``no proof pots; did you mean pods?`` for each unknown word, then all known ones; empty if none."""
    lines = [f"no {kind} {word}{did_you_mean(word, known)}" for word in words if word not in known]
    return "\n  ".join([*lines, f"there are: {', '.join(known)}"]) if lines else ""


def model_at(model: type[BaseModel], where: Where) -> type[BaseModel] | None:
    """Return the model at a path; None if there is something else."""
    annotation: Any = model
    for part in where:
        annotation = _step(annotation, part)
    plain = _plain(annotation)
    return plain if isinstance(plain, type) and issubclass(plain, BaseModel) else None


def field_at(model: type[BaseModel], where: Where) -> FieldInfo | None:
    """Return the field at a path; None if it isn't a field of a model."""
    holder = model_at(model, where[:-1]) if where else None
    return holder.model_fields.get(str(where[-1])) if holder else None


def choices(field: FieldInfo | None) -> list[str]:
    """Return the values of a field that has a fixed set of them."""
    types = (field.annotation, *get_args(field.annotation)) if field else ()
    enums = [each for each in types if isinstance(each, type) and issubclass(each, StrEnum)]
    return [str(choice) for enum in enums for choice in enum]


def owners(model: type[BaseModel], key: str) -> list[str]:
    """Return where in the model a key belongs: pods -> ["network.pods"]."""
    return list(_owners(model).get(key, ()))


@cache
def _owners(model: type[BaseModel]) -> dict[str, list[str]]:
    paths: dict[str, list[str]] = {}
    for where in _places(model, ()):
        paths.setdefault(str(where[-1]), []).append(show(where))
    return paths


def _places(model: type[BaseModel], prefix: Where) -> Iterator[Where]:
    for name, field in model.model_fields.items():
        yield (*prefix, name)
        inner = _plain(field.annotation)
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _places(inner, (*prefix, name))


def _step(annotation: Any, part: str | int) -> Any:
    plain = _plain(annotation)
    if isinstance(plain, type) and issubclass(plain, BaseModel):
        field = plain.model_fields.get(str(part))
        return field.annotation if field else None
    arguments = get_args(plain)
    if get_origin(plain) is dict:
        return arguments[1]
    return arguments[0] if get_origin(plain) is tuple else None


def _plain(annotation: Any) -> Any:
    """Return the type without Annotated and `| None`."""
    if get_origin(annotation) is Annotated:
        return _plain(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        others = [choice for choice in get_args(annotation) if choice is not type(None)]
        return _plain(others[0]) if len(others) == 1 else annotation
    return annotation
