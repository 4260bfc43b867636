"""Which keys a model takes at a place, and which one a wrong key was meant to be."""

from __future__ import annotations

import difflib
import types
from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from cluster.document import Where, show

# Below difflib's own 0.6, so that pod_cidr finds pods; keys are few, and a wrong guess is only a guess.
_LIKENESS = 0.5


def near(word: str, known: Iterable[str]) -> list[str]:
    """The known words most like `word`, best first; at most two."""
    by_lower = {name.lower(): name for name in known}
    found = difflib.get_close_matches(word.lower(), list(by_lower), n=2, cutoff=_LIKENESS)
    return [by_lower[name] for name in found]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``; did you mean pods?``, or nothing where no known word is like it."""
    found = near(word, known)
    return f"; did you mean {' or '.join(found)}?" if found else ""


def unknown(kind: str, words: Iterable[str], known: Collection[str]) -> str:
    """``no proof pots; did you mean pods?`` a line, then what there is; nothing where all are known."""
    told = [f"no {kind} {word}{did_you_mean(word, known)}" for word in words if word not in known]
    return "\n  ".join([*told, f"there are: {', '.join(known)}"]) if told else ""


def model_at(model: type[BaseModel], where: Where) -> type[BaseModel] | None:
    """The model whose keys stand at a place, None where the place holds something else."""
    annotation: Any = model
    for part in where:
        annotation = _step(annotation, part)
    plain = _plain(annotation)
    return plain if isinstance(plain, type) and issubclass(plain, BaseModel) else None


def field_at(model: type[BaseModel], where: Where) -> FieldInfo | None:
    """The field at a place, None where the place is no field of a model."""
    holder = model_at(model, where[:-1]) if where else None
    return holder.model_fields.get(str(where[-1])) if holder else None


def choices(field: FieldInfo | None) -> list[str]:
    """What a field with a fixed set of values takes."""
    types = (field.annotation, *get_args(field.annotation)) if field else ()
    enums = [each for each in types if isinstance(each, type) and issubclass(each, StrEnum)]
    return [str(choice) for enum in enums for choice in enum]


def owners(model: type[BaseModel], key: str) -> list[str]:
    """Where in the model a key belongs: pods -> ["network.pods"]."""
    return [show(where) for where in _places(model, ()) if where[-1] == key]


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
    """Without Annotated and `| None`."""
    if get_origin(annotation) is Annotated:
        return _plain(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        others = [choice for choice in get_args(annotation) if choice is not type(None)]
        return _plain(others[0]) if len(others) == 1 else annotation
    return annotation
