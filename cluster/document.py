"""Read YAML files as plain values, with the line and column of every key and value.

libyaml (through PyYAML) parses the text: it is many times faster than a parser in Python, which matters with
thousands of hosts. No message repeats content of a file that isn't of the expected kind: it may be a key or a
list of passwords, named by mistake.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection
from dataclasses import dataclass, field
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from cluster.composing import Composer, DocumentError, Place, Where
from cluster.problems import Problem
from cluster.reading import UnreadableError, read_text

__all__ = ["Document", "Where", "kind", "parse", "read", "show"]

# Similarity at which an unknown key counts as a misspelt key of the model: machines and machine, but not clusters and etcd.
_LIKENESS = 0.7
_LONGEST_KEY = 100


@dataclass
class Document:
    """One file. If it couldn't be read, `data` is None and `problems` says why.

    keys, values: path -> (line, column), both counted from 1.
    texts: path -> the original text of scalars of other types.
    """

    file: str
    data: Any = None
    problems: list[Problem] = field(default_factory=list)
    keys: dict[Where, Place] = field(default_factory=dict)
    values: dict[Where, Place] = field(default_factory=dict)
    texts: dict[Where, str] = field(default_factory=dict)

    def at(self, where: Where, *, key: bool = False) -> Place:
        """Return line and column of a value (with `key`, of its key), or of the nearest value around it."""
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
    """Format a path: ("hosts", 3, "address") -> ``hosts[3].address``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where)
    return text.removeprefix(".")


def read(path: Path, file: str, keys: Collection[str] = ()) -> Document:
    """Read a file. Never raises: errors are in `problems`.

    file: its name in messages. keys: as for `parse`.
    """
    try:
        text = read_text(path)
    except UnreadableError as error:
        hint = f"create {file}" if error.missing else "save the file as UTF-8" if error.line else "name a readable file"
        reason = error.reason if error.missing or error.line else f"can't be read: {error.reason}"
        return Document(file, problems=[Problem("CFG-010", reason, hint, file, error.line, min(error.line, 1))])
    return parse(text, file, keys)


def parse(text: str, file: str, keys: Collection[str] = ()) -> Document:
    """Parse a text, whose top level must be a mapping.

    keys: the allowed keys at the top. If less than half of the text's keys are among them or similar, it is another
    kind of file, and messages repeat none of it.
    """
    composer = Composer(text, file, show)
    hint = f"start with {next(iter(keys))}:" if keys else "start with a key, for example name: jaguar"
    try:
        data = composer.document()
    except DocumentError as error:
        return Document(file, problems=[Problem("CFG-011", error.message, error.hint, file, *error.place)])
    except yaml.YAMLError as error:
        return Document(file, problems=[_syntax(error, text, file)])
    if not isinstance(data, dict):
        held = {str: "text", list: "a list", type(None): "nothing"}.get(type(data), "a number or a boolean")
        message = "the file is empty" if data is None else f"the file is {held}, but must be a mapping"
        return Document(file, problems=[Problem("CFG-012", message, hint, file, *composer.values.get((), (1, 1)))])
    if keys and data and (strange := sum(not _is_like(key, keys) for key in data)) * 2 > len(data):
        message = f"the file is of another kind: {strange} of its {len(data)} keys are unknown (not shown)"
        problem = Problem("CFG-012", message, f"name the right file; its keys are {', '.join(keys)}", file, 1, 1)
        return Document(file, problems=[problem])
    return Document(file, data, composer.problems, composer.keys, composer.values, composer.texts)


def _is_like(key: str, known: Collection[str]) -> bool:
    if key in known:
        return True
    return len(key) <= _LONGEST_KEY and bool(difflib.get_close_matches(key.lower(), known, n=1, cutoff=_LIKENESS))


def kind(value: Any) -> str:
    """Describe a value: ``the number 3``, ``a list``."""
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
        reason = getattr(error, "reason", "an invalid character")
        return Problem("CFG-011", f"not YAML: {reason}", "remove the character", file, line, column)
    line, column = mark.line + 1, mark.column + 1
    written = next(islice(StringIO(text), mark.line, None), "")
    if "\t" in written[:column]:
        column = written.index("\t") + 1
        return Problem(
            "CFG-011", "a tab is used for indentation; YAML allows only spaces", "use spaces", file, line, column
        )
    context = getattr(error, "context", None)
    reason = getattr(error, "problem", None) or "it ends early"
    message = f"not YAML: {reason}" + (f", {context}" if context else "")
    return Problem("CFG-011", message, "check this line and the line before", file, line, column)
