"""The events of libyaml's parser as plain values, within bounds, with the place of each.

The parser keeps no more than it needs for the next event, so what is too deep or too much ends here before it takes
memory or stack. (libyaml's own composer recurses for each level, and ends in the guard page of the stack.)
Types are those of YAML 1.2: `yes` and `10:20:30` are text, whatever PyYAML's own loaders make of them.
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
"""A place in a document: keys and indices from the top."""
Place = tuple[int, int]
"""Line and column, both counted from 1."""

MOST_DEEP = 64
"""Lists and mappings in each other; the model has 12."""
MOST_VALUES = 350_000
"""In a file, whether they are kept or left out. 7,500 machines with all that can be told of nine links each take 322,500."""
MOST_ENTRIES = 10_000
"""In one list or mapping."""
MOST_REPEATED = 50_000
"""Values that a file's aliases stand for: aliases within aliases can stand for billions."""
_LONGEST_NUMBER, _LONGEST_KEY = 64, 1000
_MOST_TAGS = 100
"""The parser compares each with all before it."""

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
    """The text is no document that can be used. Holds no word of it."""

    def __init__(self, message: str, hint: str, place: Place) -> None:
        self.message, self.hint, self.place = message, hint, place
        super().__init__(message)


class Composer:
    """The one document of a text.

    keys, values: place in the document -> place in the text. texts: what stands there, for scalars that aren't text.
    problems: of keys, which keep nothing else from being read.
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
        """Its value, None where there is none. Raises DocumentError, and yaml.YAMLError of the parser."""
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
            raise DocumentError("the file holds several documents", "leave one, without ---", _place(event))
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
        found: dict[str, Any] = {}
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
                message = f"a key has {len(key.value):,} characters, and {_LONGEST_KEY:,} are the most that is read"
                raise DocumentError(message, "write a word", (line, column))
            place = (*where, key.value)
            if key.value in found:
                first = self.keys[place][0]
                lines = f"line {first} and line {line}" if first != line else f"both on line {line}"
                message = f"key {self._show(place)} is defined twice ({lines})"
                self._tell("CFG-002", message, f"remove one; the one on line {first} counts here", place, key)
                self._skip(self._next(), depth)
                continue
            self.keys[place] = (line, column)
            found[key.value] = self._value(self._next(), place, depth)
        return found

    def _tell(self, code: str, message: str, hint: str, where: Where, event: Any) -> None:
        self.problems.append(Problem(code, message, hint, self._file, *_place(event), self._show(where)))

    def _skip(self, event: Any, depth: int) -> None:
        """Leave a value out."""
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
        """Count a value in `depth` others. Raises DocumentError where there are too many of either."""
        self._count += 1
        if self._count > MOST_VALUES:
            message = f"the file holds more than {MOST_VALUES:,} values, the most that is read"
            raise DocumentError(message, "spread the machines over several pools, each with a file", _place(event))
        if depth == MOST_DEEP and isinstance(event, yaml.CollectionStartEvent):
            message = f"lists or mappings are nested too deeply, in more than {MOST_DEEP} levels"
            raise DocumentError(message, "flatten them", _place(event))

    def _repeat(self, event: Any, where: Where) -> Any:
        if event.anchor not in self._anchors:
            raise DocumentError("an alias (*) has no anchor (&) before it", "quote it, if it is text", _place(event))
        if (anchored := self._anchors[event.anchor]) is None:
            message = "an alias stands for something that holds itself"
            raise DocumentError(message, "write out what is meant", _place(event))
        return self._copy(*anchored, where, event)

    def _copy(self, value: Any, old: Where, new: Where, event: Any) -> Any:
        self._repeated += 1
        if self._repeated > MOST_REPEATED:
            message = f"aliases stand for more than {MOST_REPEATED:,} values, the most that is read"
            raise DocumentError(message, "write out what is meant", _place(event))
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
                raise DocumentError("a tag (!) means nothing here", "quote it, if it is text", _place(event))
        if tag == "str":
            return text
        self.texts[where] = text
        if tag in ("bool", "null"):
            return text.lower() == "true" if tag == "bool" else None
        if len(text) > _LONGEST_NUMBER:
            message = f"a number has {len(text):,} characters, and {_LONGEST_NUMBER} are the most that is read"
            raise DocumentError(message, "quote it, if it is text", _place(event))
        return _number(tag, text)


def _refuse_many(entries: int, event: Any) -> None:
    if entries >= MOST_ENTRIES:
        message = f"a list or a mapping has more than {MOST_ENTRIES:,} entries, the most that is read"
        raise DocumentError(message, "spread machines over several pools, each with a file", _place(event))


def _number(tag: str, text: str) -> int | float:
    if tag == "int":
        return int(text, 0 if text[:2] in ("0x", "0o") else 10)
    return float(text.replace(".", "", 1) if text[-1] in "fFnN" else text)


def _place(event: Any) -> Place:
    mark = event.start_mark
    return mark.line + 1, mark.column + 1
