"""The keys of a JSON Schema that a model made, as tables: one for each mapping."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.reference import markdown

Schema = dict[str, Any]
HEAD = ("key", "type", "default", "limits", "meaning")
_NULL = {"type": "null"}
_RULES_OUT = ("description", "default", "examples", "title")


@dataclass(frozen=True)
class Kind:
    """A kind of value with a rule of its own: the word for it in tables, what it may be, and its schema."""

    word: str
    meaning: str
    schema: Schema

    def takes(self, schema: Schema) -> bool:
        return _rules(schema) == _rules(self.schema)


@dataclass(frozen=True)
class Section:
    """A mapping: its path (`pools.<pool>.taints[]`), what it is for, and a row for each of its keys."""

    path: str
    about: str
    rows: tuple[tuple[str, ...], ...]

    def text(self, heading: str) -> str:
        about = f"{markdown.prose(self.about)}\n\n" if self.about else ""
        return f"{heading}\n\n{about}{markdown.table(HEAD, self.rows)}"


@dataclass(frozen=True)
class Walk:
    """definitions: of the schema. entries: key of a mapping -> what the operator's own keys in it name, level by level."""

    definitions: Mapping[str, Schema]
    kinds: tuple[Kind, ...]
    entries: Mapping[str, tuple[str, ...]]

    def sections(self, schema: Schema, path: str = "") -> Iterator[Section]:
        """The mapping, then those in it, in the order of the model."""
        fields = {f"{path}.{key}" if path else key: field for key, field in schema["properties"].items()}
        rows = tuple(self._row(at, field, schema.get("required", ())) for at, field in fields.items())
        yield Section(path, schema.get("description", ""), rows)
        for at, field in fields.items():
            if inner := self._inner(field, at):
                yield from self.sections(inner[1], inner[0])

    def _row(self, path: str, field: Schema, required: list[str]) -> tuple[str, ...]:
        key, found, inner = path.rpartition(".")[2], self._resolved(field), self._inner(field, path)
        word, below = self._word(found), markdown.slug(inner[0]) if inner else ""
        null = " or null" if key in required and _NULL in field.get("anyOf", ()) else ""
        return (
            f"`{key}`" if below == anchor(path) else markdown.anchored(anchor(path), f"`{key}`"),
            (f"[{word}](#{below})" if below else word) + null,
            "required" if key in required else self._default(field),
            self._limits(found),
            markdown.prose(field.get("description") or found.get("description", "")) + self._examples(field),
        )

    def _resolved(self, field: Schema) -> Schema:
        """With what it refers to, and without the choice of leaving it out."""
        if "$ref" in field:
            return self.definitions[field["$ref"].rpartition("/")[2]]
        given = [each for each in field.get("anyOf", ()) if each != _NULL]
        if len(given) == 1:
            return self._resolved(given[0])
        return field | {"anyOf": given} if given else field

    def _inner(self, field: Schema, path: str) -> tuple[str, Schema] | None:
        """The mapping of the model's that is in a field, at whatever depth, and its path."""
        levels = list(self.entries.get(path.rpartition(".")[2], ()))
        found = self._resolved(field)
        while "properties" not in found:
            if "items" in found:
                path, found = f"{path}[]", self._resolved(found["items"])
            elif entry := _entry(found):
                path, found = f"{path}.<{levels.pop(0) if levels else 'name'}>", self._resolved(entry[1])
            else:
                return None
        return path, found

    def _kind(self, found: Schema) -> Kind | None:
        return next((kind for kind in self.kinds if kind.takes(found)), None)

    def _word(self, schema: Schema) -> str:
        found = self._resolved(schema)
        if kind := self._kind(found):
            return kind.word
        if "properties" in found:
            return "mapping"
        if "items" in found:
            return f"list of {_plural(self._word(found['items']))}"
        if entry := _entry(found):
            key = self._kind({"type": "string", "pattern": entry[0]})
            return f"mapping: {key.word if key else 'text'} → {self._word(entry[1])}"
        if "anyOf" in found:
            return " or ".join(self._word(each) for each in found["anyOf"])
        return ("word" if "enum" in found else "text") if found["type"] == "string" else str(found["type"])

    def _limits(self, found: Schema) -> str:
        """Of the value itself; what its kind takes is said once, at the kind."""
        if self._kind(found):
            return ""
        if "enum" in found:
            return ", ".join(markdown.code(str(each)) for each in found["enum"])
        bounds = {"imum": "", "Items": "entries", "Properties": "entries", "Length": "characters"}
        limits = [_between(found, f"min{end}", f"max{end}", unit) for end, unit in bounds.items()]
        limits.append(markdown.code(found["pattern"]) if "pattern" in found else "")
        return ", ".join(limit for limit in limits if limit)

    def _default(self, field: Schema) -> str:
        """Nothing for a mapping whose keys have defaults of their own."""
        if "default" not in field and _NULL in field.get("anyOf", ()):
            return "none"
        if "properties" in self._resolved(field):
            return ""
        return markdown.code(_yaml(field["default"])) if "default" in field else "none"

    def _examples(self, field: Schema) -> str:
        """Those that neither the kind nor the default shows."""
        kind = self._kind(self._resolved(field))
        seen = [*(kind.schema.get("examples", ()) if kind else ()), field.get("default")]
        shown = ", ".join(markdown.code(_yaml(each)) for each in field.get("examples", ()) if each not in seen)
        return f" Example: {shown}." if shown else ""


def anchor(path: str) -> str:
    """Of a key: `pools.pool.taints.key`."""
    return path.translate(str.maketrans("", "", "<>[]"))


def _rules(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if key not in _RULES_OUT}


def _entry(schema: Schema) -> tuple[str, Schema] | None:
    """Where the keys are the operator's: their pattern ("" for any), and the schema of the values."""
    for pattern, values in schema.get("patternProperties", {}).items():
        return pattern, values
    values = schema.get("additionalProperties")
    return ("", values) if isinstance(values, dict) else None


def _between(schema: Schema, low: str, high: str, unit: str) -> str:
    least, most = schema.get(low), schema.get(high)
    if least is None and most is None:
        return ""
    number = f"at most {most}" if least is None else f"at least {least}" if most is None else f"{least} to {most}"
    return f"{number} {unit}".rstrip().replace("least 1 entries", "least one entry")


def _plural(words: str) -> str:
    irregular = {"text": "texts", "address": "addresses"}
    return " or ".join(irregular.get(word, f"{word}s") for word in words.split(" or "))


def _yaml(value: Any) -> str:
    """In one line, as an operator writes it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_yaml(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_yaml, value))}]"
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
