"""YAML text as plain values, with the line and column of every key and value.

libyaml (through PyYAML) only splits the text into nodes: it is eight times as fast as a parser
written in Python, which tells with thousands of hosts. Types are those of YAML 1.2: `yes` and
`10:20:30` are text, whatever PyYAML's own loaders make of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import yaml

from cluster.problems import Problem

Where = tuple[str | int, ...]
"""A place in a document: keys and indices from the top."""

# An operator's file has thousands of values; aliases within aliases can stand for billions.
_MOST_VALUES = 300_000

# libyaml recurses for each of these without a limit, and ends in the stack's guard page.
_ABYSS = re.compile(r"(?:[-?\[{]\s*){1000}")

_TAG = "tag:yaml.org,2002:"
# YAML 1.2.2, 10.3.2: the core schema.
_CORE = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+.0123456789",
    ),
    ("null", r"null|Null|NULL|~|", ["n", "N", "~", ""]),
)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}


for _name, _pattern, _first in _CORE:
    _Loader.add_implicit_resolver(_TAG + _name, re.compile(f"^(?:{_pattern})$"), list(_first))


@dataclass
class Document:
    """One file. `data` is None when nothing could be read; `problems` says why.

    keys, values: place -> (line, column), both counted from 1.
    texts: place -> what stands in the file, for the scalars that aren't text.
    """

    file: str
    data: Any = None
    problems: list[Problem] = field(default_factory=list)
    keys: dict[Where, tuple[int, int]] = field(default_factory=dict)
    values: dict[Where, tuple[int, int]] = field(default_factory=dict)
    texts: dict[Where, str] = field(default_factory=dict)

    def at(self, where: Where, *, key: bool = False) -> tuple[int, int]:
        """Line and column of a value (of its key with `key`), or of the nearest thing around it."""
        if key and where in self.keys:
            return self.keys[where]
        while where not in self.values and where:
            where = where[:-1]
        return self.values.get(where, (1, 1))

    def problem(self, code: str, where: Where, message: str, hint: str = "", *, key: bool = False) -> Problem:
        line, column = self.at(where, key=key)
        return Problem(code, message, hint, self.file, line, column, show(where))

    def __contains__(self, where: Where) -> bool:
        return where in self.values


def show(where: Where) -> str:
    """("hosts", 3, "address") -> ``hosts[3].address``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where)
    return text.removeprefix(".")


def read(path: Path, file: str) -> Document:
    """The document in a file. Never raises: what is wrong is in `problems`. `file` is its name there."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return Document(file, problems=[Problem("CFG-010", "there is no such file", f"create {file}", file)])
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        message = f"byte {error.start + 1} isn't UTF-8"
        return Document(file, problems=[Problem("CFG-010", message, "save the file as UTF-8", file, line, 1)])
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return Document(file, problems=[Problem("CFG-010", f"can't be read: {reason}", "name a readable file", file)])
    return parse(text, file)


def parse(text: str, file: str) -> Document:
    """The document in a text. Its top must be a mapping."""
    document = Document(file)
    try:
        if _ABYSS.search(text):
            raise RecursionError
        node = yaml.compose(text, Loader=_Loader)
        if node is not None:
            document.data = _Builder(document).value(node, ())
    except yaml.YAMLError as error:
        document.problems.append(_syntax(error, text, file))
        return document
    except RecursionError:
        document.problems.append(
            Problem("CFG-011", "lists or mappings are nested too deeply", "flatten them", file, 1, 1)
        )
        return document
    if not isinstance(document.data, dict):
        empty = document.data is None
        found = "the file is empty" if empty else f"the file holds {kind(document.data)} where a mapping must stand"
        document.problems.append(document.problem("CFG-012", (), found, "start with a key, for example name: jaguar"))
        document.data = None
    return document


class _Builder:
    """Turns nodes into values and notes where they stand."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._open: set[int] = set()

    def value(self, node: Any, where: Where) -> Any:
        mark = node.start_mark
        self._document.values[where] = (mark.line + 1, mark.column + 1)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, where)
        if id(node) in self._open:
            raise yaml.MarkedYAMLError(problem="an alias stands for something that holds itself", problem_mark=mark)
        if len(self._document.values) > _MOST_VALUES:
            raise yaml.MarkedYAMLError(problem=f"aliases expand to more than {_MOST_VALUES} values", problem_mark=mark)
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self.value(item, (*where, index)) for index, item in enumerate(node.value)]
            return {key: self.value(item, (*where, key)) for key, item in self._pairs(node, where)}
        finally:
            self._open.discard(id(node))

    def _pairs(self, node: yaml.MappingNode, where: Where) -> Iterator[tuple[str, yaml.Node]]:
        document = self._document
        for key_node, item in node.value:
            line, column = key_node.start_mark.line + 1, key_node.start_mark.column + 1
            if not isinstance(key_node, yaml.ScalarNode):
                message = "a key is a list or a mapping; keys are text"
                document.problems.append(
                    Problem("CFG-014", message, "write a word", document.file, line, column, show(where))
                )
                continue
            key = key_node.value
            place = (*where, key)
            if place in document.keys:
                first = document.keys[place][0]
                lines = f"line {first} and line {line}" if first != line else f"both on line {line}"
                message = f"key {show(place)} is defined twice ({lines})"
                hint = f"remove one; the one on line {first} counts here"
                document.problems.append(Problem("CFG-002", message, hint, document.file, line, column, show(place)))
                continue
            document.keys[place] = (line, column)
            yield key, item

    def _scalar(self, node: yaml.ScalarNode, where: Where) -> Any:
        tag = node.tag.removeprefix(_TAG)
        if tag == "str":
            return node.value
        self._document.texts[where] = node.value
        try:
            if tag == "int":
                return int(node.value, 0 if node.value[:2] in ("0x", "0o") else 10)
            if tag == "float":
                return float(node.value)
        except ValueError as error:
            raise yaml.MarkedYAMLError(problem=str(error), problem_mark=node.start_mark) from None
        if tag in ("bool", "null"):
            return node.value.lower() == "true" if tag == "bool" else None
        raise yaml.MarkedYAMLError(problem=f"the tag {node.tag} means nothing here", problem_mark=node.start_mark)


def kind(value: Any) -> str:
    """What a value is, in words: ``the number 3``, ``a list``."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return f"the boolean {str(value).lower()}"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    if isinstance(value, str):
        return f'the text "{value}"'
    return "a list" if isinstance(value, list) else "a mapping"


def _syntax(error: yaml.YAMLError, text: str, file: str) -> Problem:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:
        position = getattr(error, "position", 0)
        before = text[:position]
        line, column = before.count("\n") + 1, position - before.rfind("\n")
        reason = getattr(error, "reason", str(error))
        return Problem("CFG-011", f"not YAML: {reason}", "remove the character", file, line, column)
    line, column = mark.line + 1, mark.column + 1
    lines = text.splitlines()
    if line <= len(lines) and "\t" in lines[line - 1][:column]:
        column = lines[line - 1].index("\t") + 1
        return Problem(
            "CFG-011", "a tab is used for indentation; YAML takes spaces only", "use spaces", file, line, column
        )
    context = getattr(error, "context", None)
    reason = str(getattr(error, "problem", None) or error)
    message = f"not YAML: {reason}" + (f", {context}" if context else "")
    return Problem("CFG-011", message, "see what stands there and on the line before", file, line, column)
