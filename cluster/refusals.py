"""Turn pydantic's errors into problems in plain words, with the position in the file and a hint."""

from __future__ import annotations

import re
from typing import Any

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from cluster import versions
from cluster.document import Document, Where, kind, show
from cluster.fields import choices, did_you_mean, field_at, model_at, near, owners
from cluster.foreign_keys import foreign_key
from cluster.model import field_docstrings
from cluster.problems import Problem

_VERSION = ("kubernetes", "version")
_EXPECTED = {"int": "a whole number", "bool": "true or false", "string": "text", "float": "a number"}
_EXPECTED |= {"model": "a mapping of keys", "dict": "a mapping of keys", "tuple": "a list", "list": "a list"}
_BOOLEANS = {"true": "true", "yes": "true", "on": "true", "false": "false", "no": "false", "off": "false"}


def place(error: ErrorDetails, data: Any) -> Where:
    """Return the path in the document that an error is about, without pydantic's additions.

    For a missing key, this is the mapping that should have it.
    """
    where: list[str | int] = []
    for part in error["loc"]:
        inside = part in data if isinstance(data, dict) else isinstance(data, list) and isinstance(part, int)
        if not inside:
            break
        data = data[part]
        where.append(part)
    return tuple(where)


def explain(error: ErrorDetails, document: Document, model: type[BaseModel]) -> Problem:
    """Return one of pydantic's errors as a problem."""
    where, name, value = place(error, document.data), error["type"], error["input"]
    context = error.get("ctx", {})
    path = show(where)
    if name == "extra_forbidden":
        return _unknown_key(where, document, model)
    if name == "missing":
        missing = (*where, error["loc"][-1])
        return _missing(missing, where, document, model)
    if error["loc"][-1] == "[key]":
        return document.problem(
            name, where, f"{path}: {context.get('message', error['msg'])}", context["hint"], key=True
        )
    if value is None:
        field = field_at(model, where)
        optional = ", or leave the key out" if field and not field.is_required() else ""
        hint = _hint(where, model, f"give {path} a value{optional}")
        return document.problem("CFG-013", where, f"{path} has no value", hint)
    if re.fullmatch(r"[A-Z]{3}-\d{3}", name):
        colon = ":" if name == "CFG-005" else ""
        return document.problem(name, where, f"{path}{colon} {context['message']}", context["hint"])
    if name == "enum":
        return _choice(where, value, document, model)
    if "limit" in _limit(name, context):
        return _outside(where, _limit(name, context), value, document)
    return _wrong_type(where, name, value, document)


def _unknown_key(where: Where, document: Document, model: type[BaseModel]) -> Problem:
    if foreign := foreign_key(where, document.data):
        return document.problem(foreign.code, where, foreign.message, foreign.hint, key=True)
    holder = model_at(model, where[:-1])
    keys = list(holder.model_fields) if holder else []
    word = str(where[-1])
    elsewhere, best = owners(model, word), near(word, keys)
    if elsewhere:
        message, hint = (
            f"unknown key {show(where)}; it belongs in {' or '.join(elsewhere)}",
            f"move it to {elsewhere[0]}",
        )
    else:
        message = f"unknown key {show(where)}{did_you_mean(word, keys)}"
        hint = f"write {best[0]}" if best else f"remove it; the keys here are {', '.join(keys)}"
    return document.problem("CFG-001", where, message, hint, key=True)


def _missing(missing: Where, where: Where, document: Document, model: type[BaseModel]) -> Problem:
    holder = document.problem(
        "CFG-013", where, f"{show(missing)} is missing", _hint(missing, model, f"add {missing[-1]}")
    )
    return Problem(holder.code, holder.message, holder.hint, holder.file, holder.line, holder.column, show(missing))


def _hint(where: Where, model: type[BaseModel], plain: str) -> str:
    holder = model_at(model, where[:-1])
    about = field_docstrings(holder).get(str(where[-1]), "").split(".")[0].replace("\n", " ") if holder else ""
    return f"{plain} ({about})" if about else plain


def _choice(where: Where, value: Any, document: Document, model: type[BaseModel]) -> Problem:
    allowed = choices(field_at(model, where))
    word = value if isinstance(value, str) else kind(value)
    message = f"{show(where)} {word} isn't one of {', '.join(allowed)}{did_you_mean(word, allowed)}"
    code = "CLD-004" if where[-1] == "effect" else "CFG-015"
    best = near(word, allowed)
    return document.problem(code, where, message, f"write {best[0] if best else allowed[0]}")


def _limit(name: str, context: dict[str, Any]) -> dict[str, str]:
    if name == "greater_than_equal":
        return {"limit": str(context["ge"]), "than": "is below the minimum", "write": f"write {context['ge']} or more"}
    if name == "less_than_equal":
        return {"limit": str(context["le"]), "than": "is above the maximum", "write": f"write {context['le']} or less"}
    if name == "too_long":
        most = str(context["max_length"])
        return {"limit": most, "than": "has too many entries; the maximum is", "write": f"keep {most} or fewer"}
    if name == "too_short":
        least = str(context["min_length"])
        return {
            "limit": least,
            "than": "has too few entries; the minimum is",
            "write": f"add entries, at least {least} in total",
        }
    return {}


def _outside(where: Where, limit: dict[str, str], value: Any, document: Document) -> Problem:
    shown = f" {value}" if isinstance(value, int) else ""
    message = f"{show(where)}{shown} {limit['than']}, {limit['limit']}".replace("is, ", "is ")
    return document.problem("CFG-015", where, message, limit["write"])


def _wrong_type(where: Where, name: str, value: Any, document: Document) -> Problem:
    path, type_name = show(where), name.partition("_")[0]
    scalar = isinstance(value, (bool, int, float))
    if where == _VERSION and scalar:
        text = document.texts.get(where, str(value))
        message = f'{path} is the number {text}; YAML drops its last zero; quote it: "{versions.KUBERNETES}"'
        return document.problem("CFG-004", where, message, f'write "{versions.KUBERNETES}"')
    if type_name == "string" and scalar:
        text = document.texts.get(where, str(value))
        return document.problem("CFG-003", where, f'{path} is {kind(value)}; quote it: "{text}"', f'write "{text}"')
    if type_name == "bool" and isinstance(value, str) and value.lower() in _BOOLEANS:
        meant = _BOOLEANS[value.lower()]
        return document.problem(
            "CFG-003", where, f'{path} is the string "{value}"; write {meant} without quotes', f"write {meant}"
        )
    if type_name == "int" and isinstance(value, str) and re.fullmatch(r"[-+]?\d+", value.strip()):
        meant = str(int(value))
        return document.problem(
            "CFG-003", where, f'{path} is the string "{value}"; write {meant} without quotes', f"write {meant}"
        )
    expected = _EXPECTED.get(type_name, "something else")
    if name == "int_type" and where[:2] == ("control_plane", "zones"):
        expected = "a whole number or text"
    return document.problem(
        "CFG-014", where, f"{path or 'the file'} is {kind(value)}, but must be {expected}", f"write {expected}"
    )
