"""Problems of a spec: what is wrong, where, and how to fix it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from cluster.errors import RefusedError

Severity = Literal["error", "warning"]

MOST_SHOWN = 20
"""Problems per code that are shown to people; --json has all of them."""
_LONGEST_TEXT, _END_OF_TEXT = 2000, 600
_LONGEST_WORD = 200
_LONG_WORD = re.compile(rf"\S{{{_LONGEST_WORD + 1},}}")


def legible(text: str) -> str:
    """Return the text with escapes for characters that control a terminal or are invisible: ``\\x1b``, ``\\u202e``.

    These are Unicode's categories "Other" and "Separator" without the space: controls, directions, surrogates.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _brief(text: str) -> str:
    """Return the text legible, with overlong values cut."""
    if len(text) <= _LONGEST_WORD:
        return legible(text)
    if len(text) > _LONGEST_TEXT:
        text = f"{text[: _LONGEST_TEXT - _END_OF_TEXT]}…{text[-_END_OF_TEXT:]}"
    return legible(_LONG_WORD.sub(lambda word: f"{word[0][:80]}…{word[0][-20:]}", text))


@dataclass(frozen=True)
class Problem:
    """One problem with one value of a file.

    line, column: counted from 1; 0 if the value isn't in a file.
    path: the value's path in the spec, for example network.pods or hosts[3].address.
    hint: one value or one command that fixes it.

    Texts contain values from files that anybody may have written: they are made legible, and overlong values are cut.
    """

    code: str
    message: str
    hint: str = ""
    file: str = ""
    line: int = 0
    column: int = 0
    path: str = ""
    severity: Severity = "error"
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("message", "hint", "path"):
            object.__setattr__(self, name, _brief(getattr(self, name)))
        object.__setattr__(self, "notes", tuple(map(_brief, self.notes)))

    @property
    def docs(self) -> str:
        """Where the code is explained, relative to the root of the repository."""
        return f"docs/reference/errors.md#{self.code.lower()}"

    @property
    def is_error(self) -> bool:
        return self.severity == "error"

    def __str__(self) -> str:
        place = [legible(self.file), *(str(number) for number in (self.line, self.column) if number)]
        lines = [f"{':'.join(place)}: {self.severity}[{self.code}] {self.message}"]
        lines += [f"    {note}" for note in self.notes]
        if self.hint:
            lines.append(f"    fix: {self.hint}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Return the problem in the form of `--json`."""
        return {
            "code": self.code,
            "severity": self.severity,
            "file": legible(self.file),
            "line": self.line,
            "column": self.column,
            "path": self.path,
            "message": self.message,
            "hint": self.hint,
            "notes": list(self.notes),
            "docs": self.docs,
        }


def in_order(problems: list[Problem]) -> list[Problem]:
    """Return problems sorted by file and line, without duplicates."""
    return sorted(dict.fromkeys(problems), key=lambda p: (p.file, p.line, p.column, p.code, p.message))


def shown(problems: Iterable[Problem]) -> Iterator[tuple[str, bool]]:
    """Yield (text, whether it is an error) of each problem to show, in order, then the number of those not shown."""
    counts: Counter[tuple[str, bool]] = Counter()
    for problem in problems:
        kind = (problem.code, problem.is_error)
        counts[kind] += 1
        if counts[kind] <= MOST_SHOWN:
            yield str(problem), problem.is_error
    for (code, is_error), count in counts.items():
        if count > MOST_SHOWN:
            yield (
                f"{'error' if is_error else 'warning'}[{code}] and {count - MOST_SHOWN:,} more; --json has all",
                is_error,
            )


class SpecError(RefusedError):
    """A spec can't be used. problems: all problems, including warnings."""

    code = "bad-spec"
    problems: list[Problem]

    def __init__(self, problems: list[Problem]) -> None:
        ordered = in_order(problems)
        super().__init__("\n".join(text for text, _ in shown(ordered)), problems=ordered)
