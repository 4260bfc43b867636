"""What pydantic refuses, said in plain words with the place in the file and the way out."""

from __future__ import annotations

import re
from typing import Any

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from cluster import versions
from cluster.document import Document, Where, kind, show
from cluster.fields import choices, did_you_mean, field_at, model_at, near, owners
from cluster.problems import Problem
from cluster.tried import tried

_VERSION = ("kubernetes", "version")
_WANTED = {"int": "a whole number", "bool": "true or false", "string": "text", "float": "a number"}
_WANTED |= {"model": "a mapping of keys", "dict": "a mapping of keys", "tuple": "a list", "list": "a list"}
_BOOLEANS = {"true": "true", "yes": "true", "on": "true", "false": "false", "no": "false", "off": "false"}


def place(error: ErrorDetails, data: Any) -> Where:
    """The place in the document that an error is about: its location without pydantic's own additions.

    For a missing key, the mapping that should hold it.
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
    """One of pydantic's errors as a problem."""
    where, name, found = place(error, document.data), error["type"], error["input"]
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
    if found is None:
        field = field_at(model, where)
        optional = ", or leave the key out" if field and not field.is_required() else ""
        hint = _hint(where, model, f"give {path} a value{optional}")
        return document.problem("CFG-013", where, f"{path} has no value", hint)
    if re.fullmatch(r"[A-Z]{3}-\d{3}", name):
        colon = ":" if name == "CFG-005" else ""
        return document.problem(name, where, f"{path}{colon} {context['message']}", context["hint"])
    if name == "enum":
        return _choice(where, found, document, model)
    if "limit" in _limit(name, context):
        return _outside(where, _limit(name, context), found, document)
    return _wrong_type(where, name, found, document)


def _unknown_key(where: Where, document: Document, model: type[BaseModel]) -> Problem:
    if said := tried(where, document.data):
        return document.problem(said.code, where, said.message, said.hint, key=True)
    holder = model_at(model, where[:-1])
    known = list(holder.model_fields) if holder else []
    word = str(where[-1])
    elsewhere, best = owners(model, word), near(word, known)
    if elsewhere:
        message, hint = (
            f"unknown key {show(where)}; it belongs at {' or '.join(elsewhere)}",
            f"move it to {elsewhere[0]}",
        )
    else:
        message = f"unknown key {show(where)}{did_you_mean(word, known)}"
        hint = f"write {best[0]}" if best else f"remove it; the keys here are {', '.join(known)}"
    return document.problem("CFG-001", where, message, hint, key=True)


def _missing(missing: Where, where: Where, document: Document, model: type[BaseModel]) -> Problem:
    holder = document.problem(
        "CFG-013", where, f"{show(missing)} is missing", _hint(missing, model, f"add {missing[-1]}")
    )
    return Problem(holder.code, holder.message, holder.hint, holder.file, holder.line, holder.column, show(missing))


def _hint(where: Where, model: type[BaseModel], plain: str) -> str:
    field = field_at(model, where)
    about = (field.description or "").split(".")[0].replace("\n", " ") if field else ""
    return f"{plain} ({about})" if about else plain


def _choice(where: Where, found: Any, document: Document, model: type[BaseModel]) -> Problem:
    known = choices(field_at(model, where))
    word = found if isinstance(found, str) else kind(found)
    message = f"{show(where)} {word} isn't one of {', '.join(known)}{did_you_mean(word, known)}"
    code = "CLD-004" if where[-1] == "effect" else "CFG-015"
    best = near(word, known)
    return document.problem(code, where, message, f"write {best[0] if best else known[0]}")


def _limit(name: str, context: dict[str, Any]) -> dict[str, str]:
    if name == "greater_than_equal":
        return {"limit": str(context["ge"]), "than": "is below the least", "write": f"write {context['ge']} or more"}
    if name == "less_than_equal":
        return {"limit": str(context["le"]), "than": "is above the most", "write": f"write {context['le']} or less"}
    if name == "too_long":
        most = str(context["max_length"])
        return {"limit": most, "than": "has too many entries; the most is", "write": f"leave {most} or fewer"}
    if name == "too_short":
        least = str(context["min_length"])
        return {"limit": least, "than": "has too few entries; the least is", "write": f"give {least} or more"}
    return {}


def _outside(where: Where, limit: dict[str, str], found: Any, document: Document) -> Problem:
    value = f" {found}" if isinstance(found, int) else ""
    message = f"{show(where)}{value} {limit['than']}, {limit['limit']}".replace("is, ", "is ")
    return document.problem("CFG-015", where, message, limit["write"])


def _wrong_type(where: Where, name: str, found: Any, document: Document) -> Problem:
    path, wanted = show(where), name.partition("_")[0]
    scalar = isinstance(found, (bool, int, float))
    if where == _VERSION and scalar:
        text = document.texts.get(where, str(found))
        message = f'{path} is the number {text}; YAML drops its last zero. Quote it: "{versions.KUBERNETES}"'
        return document.problem("CFG-004", where, message, f'write "{versions.KUBERNETES}"')
    if wanted == "string" and scalar:
        text = document.texts.get(where, str(found))
        return document.problem("CFG-003", where, f'{path} is {kind(found)}; quote it: "{text}"', f'write "{text}"')
    if wanted == "bool" and isinstance(found, str) and found.lower() in _BOOLEANS:
        meant = _BOOLEANS[found.lower()]
        return document.problem(
            "CFG-003", where, f'{path} is the string "{found}"; write {meant} without quotes', f"write {meant}"
        )
    if wanted == "int" and isinstance(found, str) and re.fullmatch(r"[-+]?\d+", found.strip()):
        meant = str(int(found))
        return document.problem(
            "CFG-003", where, f'{path} is the string "{found}"; write {meant} without quotes', f"write {meant}"
        )
    expected = _WANTED.get(wanted, "something else")
    if name == "int_type" and where[:2] == ("control_plane", "zones"):
        expected = "a whole number or text"
    return document.problem(
        "CFG-014", where, f"{path or 'the file'} is {kind(found)}; {expected} must stand here", f"write {expected}"
    )
