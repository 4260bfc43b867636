"""Compose the events of libyaml's parser into plain values with positions, within limits.

The parser keeps only what it needs for the next event, so documents that are too deep or too large are refused here
before they use memory or stack. (libyaml's own composer recurses for each level and crashes in the stack's guard page.)
Types are those of YAML 1.2: `yes` and `10:20:30` are text, unlike in PyYAML's loaders.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count
from typing import Any

import yaml
from yaml._yaml import CParser

from cluster.problems import Problem

Where = tuple[str | int, ...]
"""A path in a document: keys and indices from the top."""
Place = tuple[int, int]
"""Line and column, both counted from 1."""

MOST_DEEP = 64
"""Nesting of lists and mappings; the model has 12 levels."""
MOST_VALUES = 350_000
"""Values in a file, including skipped ones. 7,500 machines with all settings of nine links each have 322,500."""
MOST_ENTRIES = 10_000
"""Entries in one list or mapping."""
MOST_REPEATED = 50_000
"""Values that a file's aliases expand to: nested aliases can expand to billions."""
_LONGEST_NUMBER, _LONGEST_KEY = 64, 1000
_MOST_TAGS = 100
"""The parser compares each %TAG line with all before it."""

# YAML 1.2.2, 10.3.2: the core schema.
_CORE = {
    "null": re.compile(r"null|Null|NULL|~|"),
    "bool": re.compile(r"true|True|TRUE|false|False|FALSE"),
    "int": re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"),
    "float": re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"),
}
_FIRST = frozenset("-+.0123456789~nNtTfF")
_TAG = "tag:yaml.org,2002:"


class DocumentError(Exception):
    """The text isn't a usable document. The error repeats none of it."""

    def __init__(self, message: str, hint: str, place: Place) -> None:
        self.message, self.hint, self.place = message, hint, place
        super().__init__(message)


class Composer:
    """Composes the single document of a text.

    keys, values: path in the document -> position in the text. texts: the original text of scalars of other types.
    problems: problems of keys, which don't stop the rest from being read.
    """

    def __init__(self, text: str, file: str, show: Callable[[Where], str]) -> None:
        self.keys: dict[Where, Place] = {}
        self.values: dict[Where, Place] = {}
        self.texts: dict[Where, str] = {}
        self.problems: list[Problem] = []
        self._next: Callable[[], Any] = CParser(text).get_event
        self._text, self._file, self._show = text, file, show
        self._anchors: dict[str, tuple[Any, Where] | None] = {}
        self._count = self._repeated = 0

    def document(self) -> Any:
        """Return the document's value; None if there is none. Raises DocumentError, or the parser's yaml.YAMLError."""
        if self._text.count("%TAG") > _MOST_TAGS:
            raise DocumentError(f"the file has more than {_MOST_TAGS} lines with %TAG", "remove them", (1, 1))
        self._next()
        event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            return None
        value = self._value(self._next(), (), 0)
        self._next()
        event = self._next()
        if not isinstance(event, yaml.StreamEndEvent):
            raise DocumentError("the file has several documents", "keep one, and remove ---", _place(event))
        return value

    def _value(self, event: Any, where: Where, depth: int) -> Any:
        kind = type(event)
        if kind is yaml.AliasEvent:
            return self._repeat(event, where)
        self._bound(event, depth)
        self.values[where] = _place(event)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        value: Any
        if kind is yaml.ScalarEvent:
            value = self._scalar(event, where)
        elif kind is yaml.SequenceStartEvent:
            value = []
            while type(inner := self._next()) is not yaml.SequenceEndEvent:
                _refuse_many(len(value), inner)
                value.append(self._value(inner, (*where, len(value)), depth + 1))
        else:
            value = self._mapping(where, depth + 1)
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, where)
        return value

    def _mapping(self, where: Where, depth: int) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for entries in count():
            if type(key := self._next()) is yaml.MappingEndEvent:
                break
            _refuse_many(entries, key)
            line, column = _place(key)
            if type(key) is not yaml.ScalarEvent:
                message = "a key is a list, a mapping or an alias; keys are text"
                self._tell("CFG-014", message, "write a word", where, key)
                self._skip(key, depth)
                self._skip(self._next(), depth)
                continue
            if len(key.value) > _LONGEST_KEY:
                message = f"a key has {len(key.value):,} characters, above the limit of {_LONGEST_KEY:,}"
                raise DocumentError(message, "write a word", (line, column))
            place = (*where, key.value)
            if key.value in mapping:
                first = self.keys[place][0]
                lines = f"line {first} and line {line}" if first != line else f"both on line {line}"
                message = f"key {self._show(place)} is defined twice ({lines})"
                self._tell("CFG-002", message, f"remove one; checks use the one on line {first}", place, key)
                self._skip(self._next(), depth)
                continue
            self.keys[place] = (line, column)
            mapping[key.value] = self._value(self._next(), place, depth)
        return mapping

    def _tell(self, code: str, message: str, hint: str, where: Where, event: Any) -> None:
        self.problems.append(Problem(code, message, hint, self._file, *_place(event), self._show(where)))

    def _skip(self, event: Any, depth: int) -> None:
        """Skip a value."""
        around = depth
        while True:
            if isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            else:
                self._bound(event, depth)
                depth += isinstance(event, yaml.CollectionStartEvent)
            if depth == around:
                return
            event = self._next()

    def _bound(self, event: Any, depth: int) -> None:
        """Count a value nested in `depth` others. Raises DocumentError at either limit."""
        self._count += 1
        if self._count > MOST_VALUES:
            message = f"the file has more than {MOST_VALUES:,} values, the limit"
            raise DocumentError(message, "split the machines into several pools, each with its own file", _place(event))
        if depth == MOST_DEEP and isinstance(event, yaml.CollectionStartEvent):
            message = f"lists or mappings are nested in more than {MOST_DEEP} levels, the limit"
            raise DocumentError(message, "flatten them", _place(event))

    def _repeat(self, event: Any, where: Where) -> Any:
        if event.anchor not in self._anchors:
            raise DocumentError("an alias (*) has no anchor (&) before it", "quote it if it is text", _place(event))
        if (anchored := self._anchors[event.anchor]) is None:
            message = "an alias refers to something that contains the alias itself"
            raise DocumentError(message, "write the values out", _place(event))
        return self._copy(*anchored, where, event)

    def _copy(self, value: Any, old: Where, new: Where, event: Any) -> Any:
        self._repeated += 1
        if self._repeated > MOST_REPEATED:
            message = f"aliases expand to more than {MOST_REPEATED:,} values, the limit"
            raise DocumentError(message, "write the values out", _place(event))
        self.values[new] = self.values[old]
        if old in self.keys and new not in self.keys:
            self.keys[new] = self.keys[old]
        if old in self.texts:
            self.texts[new] = self.texts[old]
        if isinstance(value, list):
            return [self._copy(each, (*old, at), (*new, at), event) for at, each in enumerate(value)]
        if isinstance(value, dict):
            return {key: self._copy(each, (*old, key), (*new, key), event) for key, each in value.items()}
        return value

    def _scalar(self, event: Any, where: Where) -> Any:
        text: str = event.value
        if event.tag in (None, "!"):
            if not event.implicit[0] or (text and text[0] not in _FIRST):
                return text
            tag = next((name for name, pattern in _CORE.items() if pattern.fullmatch(text)), "str")
        else:
            tag = event.tag.removeprefix(_TAG)
            if tag != "str" and (tag not in _CORE or not _CORE[tag].fullmatch(text)):
                raise DocumentError("tags (!) aren't supported here", "quote it if it is text", _place(event))
        if tag == "str":
            return text
        self.texts[where] = text
        if tag in ("bool", "null"):
            return text.lower() == "true" if tag == "bool" else None
        if len(text) > _LONGEST_NUMBER:
            message = f"a number has {len(text):,} characters, above the limit of {_LONGEST_NUMBER}"
            raise DocumentError(message, "quote it if it is text", _place(event))
        return _number(tag, text)


def _refuse_many(entries: int, event: Any) -> None:
    if entries >= MOST_ENTRIES:
        message = f"a list or a mapping has more than {MOST_ENTRIES:,} entries, the limit"
        raise DocumentError(message, "split machines into several pools, each with its own file", _place(event))


def _number(tag: str, text: str) -> int | float:
    if tag == "int":
        return int(text, 0 if text[:2] in ("0x", "0o") else 10)
    return float(text.replace(".", "", 1) if text[-1] in "fFnN" else text)


def _place(event: Any) -> Place:
    mark = event.start_mark
    return mark.line + 1, mark.column + 1
