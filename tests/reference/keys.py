"""The keys of a model's JSON Schema, as one table per mapping."""

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
    """A kind of value with its own rule: its word in tables, its allowed values, and its schema."""

    word: str
    meaning: str
    schema: Schema

    def takes(self, schema: Schema) -> bool:
        return _rules(schema) == _rules(self.schema)


@dataclass(frozen=True)
class Section:
    """A mapping: its path (`pools.<pool>.taints[]`), its purpose, and a row per key."""

    path: str
    about: str
    rows: tuple[tuple[str, ...], ...]

    def text(self, heading: str) -> str:
        about = f"{markdown.prose(self.about)}\n\n" if self.about else ""
        return f"{heading}\n\n{about}{markdown.table(HEAD, self.rows)}"


@dataclass(frozen=True)
class Walk:
    """definitions: of the schema. entries: key of a mapping -> placeholder for the operator's own keys in it, per level."""

    definitions: Mapping[str, Schema]
    kinds: tuple[Kind, ...]
    entries: Mapping[str, tuple[str, ...]]

    def sections(self, schema: Schema, path: str = "") -> Iterator[Section]:
        """Yield the mapping, then the mappings in it, in the order of the model."""
        fields = {f"{path}.{key}" if path else key: field for key, field in schema["properties"].items()}
        rows = tuple(self._row(at, field, schema.get("required", ())) for at, field in fields.items())
        yield Section(path, schema.get("description", ""), rows)
        for at, field in fields.items():
            if inner := self._inner(field, at):
                yield from self.sections(inner[1], inner[0])

    def _row(self, path: str, field: Schema, required: list[str]) -> tuple[str, ...]:
        key, resolved, inner = path.rpartition(".")[2], self._resolved(field), self._inner(field, path)
        word, slug = self._word(resolved), markdown.slug(inner[0]) if inner else ""
        null = " or null" if key in required and _NULL in field.get("anyOf", ()) else ""
        return (
            f"`{key}`" if slug == anchor(path) else markdown.anchored(anchor(path), f"`{key}`"),
            (f"[{word}](#{slug})" if slug else word) + null,
            "required" if key in required else self._default(field),
            self._limits(resolved),
            markdown.prose(field.get("description") or resolved.get("description", "")) + self._examples(field),
        )

    def _resolved(self, field: Schema) -> Schema:
        """Return a field with its reference resolved, and without null as a choice."""
        if "$ref" in field:
            return self.definitions[field["$ref"].rpartition("/")[2]]
        choices = [choice for choice in field.get("anyOf", ()) if choice != _NULL]
        if len(choices) == 1:
            return self._resolved(choices[0])
        return field | {"anyOf": choices} if choices else field

    def _inner(self, field: Schema, path: str) -> tuple[str, Schema] | None:
        """Return the path and schema of the model's mapping in a field, at any depth."""
        levels = list(self.entries.get(path.rpartition(".")[2], ()))
        schema = self._resolved(field)
        while "properties" not in schema:
            if "items" in schema:
                path, schema = f"{path}[]", self._resolved(schema["items"])
            elif entry := _entry(schema):
                path, schema = f"{path}.<{levels.pop(0) if levels else 'name'}>", self._resolved(entry[1])
            else:
                return None
        return path, schema

    def _kind(self, schema: Schema) -> Kind | None:
        return next((kind for kind in self.kinds if kind.takes(schema)), None)

    def _word(self, schema: Schema) -> str:
        resolved = self._resolved(schema)
        if kind := self._kind(resolved):
            return kind.word
        if "properties" in resolved:
            return "mapping"
        if "items" in resolved:
            return f"list of {_plural(self._word(resolved['items']))}"
        if entry := _entry(resolved):
            key = self._kind({"type": "string", "pattern": entry[0]})
            return f"mapping: {key.word if key else 'text'} → {self._word(entry[1])}"
        if "anyOf" in resolved:
            return " or ".join(self._word(choice) for choice in resolved["anyOf"])
        return ("word" if "enum" in resolved else "text") if resolved["type"] == "string" else str(resolved["type"])

    def _limits(self, schema: Schema) -> str:
        """Return the limits of a value; those of its kind are listed once, with the kind."""
        if self._kind(schema):
            return ""
        if "enum" in schema:
            return ", ".join(markdown.code(str(word)) for word in schema["enum"])
        bounds = {"imum": "", "Items": "entries", "Properties": "entries", "Length": "characters"}
        limits = [_between(schema, f"min{end}", f"max{end}", unit) for end, unit in bounds.items()]
        limits.append(markdown.code(schema["pattern"]) if "pattern" in schema else "")
        return ", ".join(limit for limit in limits if limit)

    def _default(self, field: Schema) -> str:
        """Return the default; "" for a mapping, whose keys have their own defaults."""
        if "default" not in field and _NULL in field.get("anyOf", ()):
            return "none"
        if "properties" in self._resolved(field):
            return ""
        return markdown.code(_yaml(field["default"])) if "default" in field else "none"

    def _examples(self, field: Schema) -> str:
        """Return the examples that neither the kind nor the default shows."""
        kind = self._kind(self._resolved(field))
        known = [*(kind.schema.get("examples", ()) if kind else ()), field.get("default")]
        shown = ", ".join(
            markdown.code(_yaml(example)) for example in field.get("examples", ()) if example not in known
        )
        return f" Example: {shown}." if shown else ""


def anchor(path: str) -> str:
    """Return the anchor of a key: `pools.pool.taints.key`."""
    return path.translate(str.maketrans("", "", "<>[]"))


def _rules(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if key not in _RULES_OUT}


def _entry(schema: Schema) -> tuple[str, Schema] | None:
    """Return the keys' pattern ("" for any) and the values' schema of a mapping whose keys the operator chooses."""
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
    """Return a value in one line, as an operator writes it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_yaml(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_yaml, value))}]"
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
