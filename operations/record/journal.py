"""The completed steps of a verb, so that an interrupted run can be resumed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

Report = Callable[[str], None]
Step = Callable[[str], AbstractContextManager[None]]
"""Shows a step of a verb while it runs: `cli.output.Steps.step`."""


class Journal(Protocol):
    """Completed steps: `operations.record.Operation`, or a substitute."""

    @property
    def resumed(self) -> bool:
        """Whether this run resumes an interrupted one of the same verb."""

    @property
    def facts(self) -> Mapping[str, str]:
        """Facts of all completed steps."""

    def has(self, step: str) -> bool:
        """Return whether a step is done."""

    def done(self, step: str, **facts: str) -> None:
        """Record a step as done."""


@dataclass
class Unrecorded:
    """An operation that is recorded only in this process."""

    resumed: bool = False
    facts: dict[str, str] = field(default_factory=dict)
    steps: list[str] = field(default_factory=list)

    def has(self, step: str) -> bool:
        return step in self.steps

    def done(self, step: str, **facts: str) -> None:
        self.steps.append(step)
        self.facts.update(facts)
