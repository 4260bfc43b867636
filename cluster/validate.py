"""A document against a model, all refusals at once.

What can be left out (an unknown key, a bad value that has a default, a bad host) is left out and
the rest is validated again, so that the rules of `cluster.check` see the rest in the same run.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from cluster.document import Document, Where
from cluster.fields import choices, field_at, model_at, near
from cluster.problems import Problem
from cluster.refusals import explain, place

_Model = TypeVar("_Model", bound=BaseModel)

# Stands for a missing text, so that the other rules can run; nothing about it is ever reported.
_UNKNOWN = "unknown"

_MOST, _TOLD_OF_MANY = 20_000, 100
"""Refusals of one file, beyond which only some are explained."""


@dataclass(frozen=True)
class Validated(Generic[_Model]):
    """value: None where nothing usable is left.

    left_out: places whose value in `value` isn't what the file says. A rule that looked at one
    of them has nothing to say.
    """

    value: _Model | None
    problems: tuple[Problem, ...] = ()
    left_out: tuple[Where, ...] = ()


def validate(model: type[_Model], document: Document) -> Validated[_Model]:
    """The model's value of a document, with a problem for every refusal. Never raises."""
    try:
        return Validated(model.model_validate(document.data))
    except ValidationError as refused:
        errors = _told_once(refused.errors(include_url=False))
    if len(errors) > _MOST:
        message = f"{len(errors):,} values are refused; the first {_TOLD_OF_MANY} are told, and no rule judges the rest"
        told = document.problem("CFG-015", (), message, "look whether this is the file that you mean")
        return Validated(None, (told, *(explain(error, document, model) for error in errors[:_TOLD_OF_MANY])))
    problems: dict[tuple[Where, str], Problem] = {}
    renamed = _renamed(errors, document, model)
    meant = set(renamed.values())
    for error in errors:
        where = place(error, document.data)
        if error["type"] == "missing" and (*where, error["loc"][-1]) in meant:
            continue
        # A union has an error for each of its branches; one is enough.
        key = (where, str(error["loc"][-1]) if error["type"] == "missing" else "")
        problems.setdefault(key, explain(error, document, model))
    data, left_out = _repaired(errors, renamed, document, model)
    try:
        value: _Model | None = model.model_validate(data)
    except ValidationError:
        value = None
    return Validated(value, tuple(problems.values()), tuple(left_out))


def _told_once(errors: list[ErrorDetails]) -> list[ErrorDetails]:
    """Without lists that are too short only for the entries of theirs that are refused."""
    lists = {error["loc"] for error in errors if error["type"] == "too_short"}
    if not lists:
        return errors
    lacking = {error["loc"][:depth] for error in errors for depth in range(len(error["loc"]))} & lists
    return [error for error in errors if error["type"] != "too_short" or error["loc"] not in lacking]


def _renamed(errors: list[ErrorDetails], document: Document, model: type[BaseModel]) -> dict[Where, Where]:
    """Unknown key -> the missing key that it was surely meant to be."""
    missing = {(*place(error, document.data), error["loc"][-1]) for error in errors if error["type"] == "missing"}
    lacking = {key[:-1] for key in missing}
    renamed: dict[Where, Where] = {}
    taken: set[Where] = set()
    for error in errors:
        where = place(error, document.data)
        if error["type"] != "extra_forbidden" or where[:-1] not in lacking:
            continue
        holder = model_at(model, where[:-1])
        best = near(str(where[-1]), holder.model_fields) if holder else []
        if best and (key := (*where[:-1], best[0])) in missing and key not in taken:
            renamed[where] = key
            taken.add(key)
    return renamed


def _repaired(
    errors: list[ErrorDetails], renamed: dict[Where, Where], document: Document, model: type[BaseModel]
) -> tuple[Any, list[Where]]:
    """(the data without what is refused, the places where that changed what the file says)."""
    data = copy.deepcopy(document.data)
    left_out: list[Where] = []
    items: set[tuple[Where, int]] = set()
    meant = set(renamed.values())
    for error in errors:
        where = place(error, document.data)
        if error["type"] == "extra_forbidden":
            _set(data, where, None, renamed.get(where))
            continue
        if error["type"] == "missing":
            where = (*where, error["loc"][-1])
        if where in meant:
            continue
        for depth, part in enumerate(where):
            if isinstance(part, int):
                items.add((where[:depth], part))
                left_out.append(where[: depth + 1])
                break
        else:
            surely, value = _meant(error, where, model)
            left_out += [] if surely else [where]
            _set(data, where, value)
    for where, index in sorted(items, key=lambda item: -item[1]):
        holder = _get(data, where)
        if isinstance(holder, list):
            del holder[index]
    return data, left_out


def _meant(error: ErrorDetails, where: Where, model: type[BaseModel]) -> tuple[bool, Any]:
    """(whether it is surely what was meant, a value to go on with or None to leave the key out)."""
    if meant := error.get("ctx", {}).get("meant"):
        return True, meant
    field = field_at(model, where)
    if error["type"] == "enum":
        return False, next(iter(near(str(error["input"]), choices(field))), None)
    return False, _UNKNOWN if field and field.is_required() and field.annotation is str else None


def _get(data: Any, where: Where) -> Any:
    for part in where:
        in_list = isinstance(data, list) and isinstance(part, int) and part < len(data)
        if not in_list and not (isinstance(data, dict) and part in data):
            return None
        data = data[part]
    return data


def _set(data: Any, where: Where, value: Any, rename: Where | None = None) -> None:
    """Give a key another value or another name; without either, remove it."""
    holder = _get(data, where[:-1]) if where else None
    if not isinstance(holder, dict):
        return
    old = holder.pop(where[-1], None)
    if rename:
        holder[rename[-1]] = old
    elif value:
        holder[where[-1]] = value
