"""Traces: JSON lines, each some alike pods that come at a time and run for a time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field, ValidationError

from cluster.model import Model
from cluster.quantities import DurationMs
from scheduling.autoscaler.gang import NO_GANGS, Gangs, Membership

_Text = dict[str, str]


class TraceError(Exception):
    """Lines that are none of a trace; the text has all of them, each with its number."""


class Line(Model):
    """Some alike pods.

    at: from the beginning of the trace. runs: how long each runs. gang: whether all of them start together or not at all.
    """

    at: DurationMs
    name: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", max_length=50)]
    runs: DurationMs
    count: int = Field(default=1, ge=1, le=100_000)
    requests: dict[str, str | int | float] = Field(default={})
    gang: bool = False
    kind: str = "Job"
    """Of what owns the pods: a Job's are never moved, a ReplicaSet's are."""
    annotations: _Text = Field(default={})
    node_selector: _Text = Field(default={})
    tolerations: tuple[dict[str, str], ...] = Field(default=(), strict=False)
    priority: int = 0


@dataclass(frozen=True)
class Arrival:
    """A pod as the API would have it. at_s, runs_s: seconds, the first from the beginning."""

    at_s: float
    runs_s: float
    pod: Mapping[str, Any]
    gangs: Gangs = field(default_factory=dict)


def read(lines: Iterable[str], file: str) -> tuple[Arrival, ...]:
    """The arrivals in order of their time. TraceError with everything wrong."""
    found: list[Arrival] = []
    problems: list[str] = []
    names: dict[str, int] = {}
    for number, text in enumerate(lines, start=1):
        if not text.strip() or text.lstrip().startswith("#"):
            continue
        try:
            line = Line.model_validate(json.loads(text))
        except ValidationError as error:
            problems += [f"{file}:{number}: {_place(each)}{each['msg']}" for each in error.errors()]
            continue
        except ValueError as error:
            problems.append(f"{file}:{number}: is no JSON object: {error}")
            continue
        if line.name in names:
            problems.append(f"{file}:{number}: name {line.name} stands in line {names[line.name]} already")
        names[line.name] = number
        found += _arrivals(line)
    if problems:
        raise TraceError("\n".join(problems))
    return tuple(sorted(found, key=lambda each: (each.at_s, each.pod["metadata"]["name"])))


def _place(error: Mapping[str, Any]) -> str:
    where = ".".join(map(str, error["loc"]))
    return f"{where}: " if where else ""


def _arrivals(line: Line) -> Iterator[Arrival]:
    group = f"default/{line.name}"
    gangs = {group: Membership(group, line.count)} if line.gang else NO_GANGS
    for at in range(line.count):
        name = f"{line.name}-{at}" if line.count > 1 else line.name
        metadata = {
            "name": name,
            "namespace": "default",
            "uid": name,
            "annotations": dict(line.annotations),
            "ownerReferences": [{"kind": line.kind, "controller": True}],
        }
        requests = {key: str(value) for key, value in line.requests.items()}
        spec = {
            "containers": [{"resources": {"requests": requests}}],
            "nodeSelector": dict(line.node_selector),
            "tolerations": list(line.tolerations),
            "priority": line.priority,
            "schedulingGroup": {"podGroupName": line.name} if line.gang else None,
        }
        yield Arrival(line.at / 1000, line.runs / 1000, {"metadata": metadata, "spec": spec, "status": {}}, gangs)
