"""What the engine does or would do to each resource, and the errors it reports: its events as data."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pulumi.automation.events import EngineEvent, StepEventMetadata

LOSING = frozenset({"replace", "create-replacement", "delete-replaced", "delete"})
"""Operations after which the content of a resource is gone."""
_IDLE = frozenset({"same", "read", "refresh"})

# The engine writes colours as <{%fg 9%}>.
_COLOUR = re.compile(r"<\{%.*?%\}>")

# Prefixes that the Automation API puts before an error of the program, and the engine's last message of a failed run.
_BY_PYTHON = "python inline source runtime error: "
_LAST_WORDS = frozenset({"update failed", "preview failed", "destroy failed"})
_FRAME = re.compile(r'^ *File "(.+)", line (\d+)', re.MULTILINE)
_STACK = "pulumi:pulumi:Stack"


@dataclass(frozen=True)
class ResourceStep:
    """One change of a resource. properties: the paths that differ, or only those that force a replacement if any does."""

    operation: str
    urn: str
    type: str
    properties: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return name_of(self.urn)

    @property
    def loses(self) -> bool:
        return self.operation in LOSING


@dataclass(frozen=True)
class Complaint:
    """An error of the engine, a provider or the program. urn: "" if it belongs to no resource."""

    urn: str
    text: str

    @property
    def is_of_protection(self) -> bool:
        """Whether the engine was asked to delete or replace a protected resource."""
        return "is protected" in self.text or "marked for protection" in self.text


@dataclass
class Recording:
    """A listener for one run of the engine. `steps` holds changes only, in the order in which they started."""

    steps: list[ResourceStep] = field(default_factory=list)
    complaints: list[Complaint] = field(default_factory=list)

    def __call__(self, event: EngineEvent) -> None:
        started, diagnostic = event.resource_pre_event, event.diagnostic_event
        if started and started.metadata.op.value not in _IDLE:
            self.steps.append(_step(started.metadata))
        if diagnostic and diagnostic.severity == "error":
            self._heard(diagnostic.urn or "", uncoloured(diagnostic.message))

    def __add__(self, later: Recording) -> Recording:
        """Join two runs into one; an error in both is kept once."""
        complaints = dict.fromkeys([*self.complaints, *later.complaints])
        return Recording([*self.steps, *later.steps], list(complaints))

    def _heard(self, urn: str, text: str) -> None:
        """Record an error. The engine reports an error of the program twice, and finally that the run failed."""
        head, *trace = text.partition("\nTraceback (most recent call last):")
        text_with_place = _with_place(head, "".join(trace))
        if not any(text_with_place.endswith(complaint.text) or head in _LAST_WORDS for complaint in self.complaints):
            self.complaints.append(Complaint("" if f"::{_STACK}::" in urn else urn, text_with_place))


def uncoloured(message: str) -> str:
    """Return a message of the engine without its marks for colours."""
    return _COLOUR.sub("", message).strip()


def name_of(urn: str) -> str:
    """Return the name that the program gave a resource."""
    return urn.rpartition("::")[2]


def _with_place(head: str, trace: str) -> str:
    """Return an error of the program with the place where it arose, without the rest of the trace."""
    frames = _FRAME.findall(trace)
    return f"{head.partition(_BY_PYTHON)[2] or head} ({':'.join(frames[-1])})" if frames else head


def _step(metadata: StepEventMetadata) -> ResourceStep:
    detailed = metadata.detailed_diff or {}
    forcing = [path for path, diff in detailed.items() if diff.diff_kind.value.endswith("-replace")]
    paths = forcing or list(detailed) or list(metadata.diffs or ())
    return ResourceStep(metadata.op.value, metadata.urn, metadata.type, tuple(sorted(paths)))
