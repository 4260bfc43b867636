"""Which steps of a verb are done, for one that was cut short and is run again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

Report = Callable[[str], None]
Step = Callable[[str], AbstractContextManager[None]]
"""Shows one of a verb's steps while it runs: `cli.output.Steps.step`."""


class Journal(Protocol):
    """Which steps are done: `operations.record.Operation`, or what stands in for one."""

    @property
    def resumed(self) -> bool:
        """An earlier run of the same verb was cut short, and this one goes on."""

    @property
    def facts(self) -> Mapping[str, str]:
        """Of all steps that are done."""

    def has(self, step: str) -> bool:
        """Whether a step is done."""

    def done(self, step: str, **facts: str) -> None:
        """Write down that it is."""


@dataclass
class Unrecorded:
    """An operation that only this process remembers."""

    resumed: bool = False
    facts: dict[str, str] = field(default_factory=dict)
    steps: list[str] = field(default_factory=list)

    def has(self, step: str) -> bool:
        return step in self.steps

    def done(self, step: str, **facts: str) -> None:
        self.steps.append(step)
        self.facts.update(facts)
