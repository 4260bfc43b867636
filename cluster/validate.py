"""Validate a document against a model and report all errors at once.

Errors that can be left out (an unknown key, a bad value with a default, a bad host) are left out, and the
rest is validated again, so that the rules of `cluster.check` can check it in the same run.
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

# Replaces a missing text so that other rules can run. Nothing about it is ever reported.
_UNKNOWN = "unknown"

_MOST, _SHOWN_OF_MANY = 20_000, 100
"""Errors in one file, above which only some are explained."""


@dataclass(frozen=True)
class Validated(Generic[_Model]):
    """Result of a validation.

    value: None if nothing usable is left.
    left_out: paths at which `value` differs from the file. Findings of rules about them are dropped.
    """

    value: _Model | None
    problems: tuple[Problem, ...] = ()
    left_out: tuple[Where, ...] = ()


def validate(model: type[_Model], document: Document) -> Validated[_Model]:
    """Validate a document and return its value, with a problem for every error. Never raises."""
    try:
        return Validated(model.model_validate(document.data))
    except ValidationError as refused:
        errors = _without_followups(refused.errors(include_url=False))
    if len(errors) > _MOST:
        message = (
            f"{len(errors):,} values are invalid; only the first {_SHOWN_OF_MANY} are shown, and other rules don't run"
        )
        summary = document.problem("CFG-015", (), message, "check that this is the right file")
        return Validated(None, (summary, *(explain(error, document, model) for error in errors[:_SHOWN_OF_MANY])))
    problems: dict[tuple[Where, str], Problem] = {}
    renamed = _renamed(errors, document, model)
    meant = set(renamed.values())
    for error in errors:
        where = place(error, document.data)
        if error["type"] == "missing" and (*where, error["loc"][-1]) in meant:
            continue
        # A union has an error for each branch; one is enough.
        key = (where, str(error["loc"][-1]) if error["type"] == "missing" else "")
        problems.setdefault(key, explain(error, document, model))
    data, left_out = _repaired(errors, renamed, document, model)
    try:
        value: _Model | None = model.model_validate(data)
    except ValidationError:
        value = None
    return Validated(value, tuple(problems.values()), tuple(left_out))


def _without_followups(errors: list[ErrorDetails]) -> list[ErrorDetails]:
    """Return errors without those about lists that are too short only because entries were refused."""
    lists = {error["loc"] for error in errors if error["type"] == "too_short"}
    if not lists:
        return errors
    lacking = {error["loc"][:depth] for error in errors for depth in range(len(error["loc"]))} & lists
    return [error for error in errors if error["type"] != "too_short" or error["loc"] not in lacking]


def _renamed(errors: list[ErrorDetails], document: Document, model: type[BaseModel]) -> dict[Where, Where]:
    """Map each unknown key to the missing key that it was obviously meant to be."""
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
    """Return (the data without refused values, the paths at which it now differs from the file)."""
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
            is_certain, value = _meant(error, where, model)
            left_out += [] if is_certain else [where]
            _set(data, where, value)
    for where, index in sorted(items, key=lambda item: -item[1]):
        holder = _get(data, where)
        if isinstance(holder, list):
            del holder[index]
    return data, left_out


def _meant(error: ErrorDetails, where: Where, model: type[BaseModel]) -> tuple[bool, Any]:
    """Return (whether the intended value is certain, a value to continue with or None to leave the key out)."""
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
    """Give a key another value or another name; with neither, remove it."""
    holder = _get(data, where[:-1]) if where else None
    if not isinstance(holder, dict):
        return
    old = holder.pop(where[-1], None)
    if rename:
        holder[rename[-1]] = old
    elif value:
        holder[where[-1]] = value
