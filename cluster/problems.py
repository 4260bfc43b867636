"""What is wrong with a spec, where, and the way out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Problem:
    """One thing wrong with one value of a file.

    line, column: counted from 1; 0 where the value stands in no file.
    path: the value's place in the spec, for example network.pods or hosts[3].address.
    hint: one value or one command that makes it right.
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

    @property
    def docs(self) -> str:
        """Where the code is explained, relative to the root of the repository."""
        return f"docs/errors.md#{self.code.lower()}"

    @property
    def is_error(self) -> bool:
        return self.severity == "error"

    def __str__(self) -> str:
        place = [self.file, *(str(number) for number in (self.line, self.column) if number)]
        lines = [f"{':'.join(place)}: {self.severity}[{self.code}] {self.message}"]
        lines += [f"    {note}" for note in self.notes]
        if self.hint:
            lines.append(f"    fix: {self.hint}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """The problem as `--json` gives it."""
        return {
            "code": self.code,
            "severity": self.severity,
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "path": self.path,
            "message": self.message,
            "hint": self.hint,
            "notes": list(self.notes),
            "docs": self.docs,
        }


def in_order(problems: list[Problem]) -> list[Problem]:
    """Sorted by file and line, each problem once."""
    return sorted(dict.fromkeys(problems), key=lambda p: (p.file, p.line, p.column, p.code, p.message))


class SpecError(Exception):
    """A spec that can't be used. `problems` holds everything found, warnings too."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = in_order(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))
