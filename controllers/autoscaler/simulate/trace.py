"""Traces: JSON lines, each of which describes equal pods that arrive at one time and run for the same duration."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, NoReturn

from kubernetes.utils.quantity import parse_quantity
from pydantic import AfterValidator, Field, ValidationError

from cluster.errors import RefusedError
from cluster.model import Model
from cluster.quantities import DurationMs
from cluster.reading import UnreadableError, read_text
from controllers.autoscaler.gang import NO_GANGS, Gangs, Membership

_Text = dict[str, str]
_LONGEST_MS = 3650 * 86_400_000
MOST_PODS = 200_000
"""In a trace: more would fill the memory of a machine."""
MOST_BYTES = 64 * 2**20
_MOST_AMOUNT = 2**63
"""Kubernetes' quantities are 64 bits wide."""


def _amounts(requests: dict[str, str | int | float]) -> dict[str, str]:
    """Return the quantities as text. Errors: raises ValueError that names every invalid one."""
    invalid = [f"{name} is {value!r}" for name, value in requests.items() if not _is_amount(value)]
    if invalid:
        raise ValueError(f'{"; ".join(invalid)}: not a quantity of 0 or more; write for example 4, "500m" or "2Gi"')
    return {name: str(value) for name, value in requests.items()}


def _is_amount(value: str | float) -> bool:
    if isinstance(value, bool) or str(value) != str(value).strip():
        return False
    try:
        number: Decimal = parse_quantity(str(value))
    except ValueError:
        return False
    return number.is_finite() and 0 <= number <= _MOST_AMOUNT


def _short(milliseconds: int) -> int:
    if milliseconds > _LONGEST_MS:
        raise ValueError("is more than ten years; write 3650d or less")
    return milliseconds


Span = Annotated[DurationMs, AfterValidator(_short)]


class Line(Model):
    """Equal pods.

    at: time from the start of the trace. runs: how long each pod runs. gang: whether they start together or not at all.
    """

    at: Span
    name: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", max_length=50)]
    runs: Span
    count: int = Field(default=1, ge=1, le=100_000)
    requests: Annotated[dict[str, str | int | float], AfterValidator(_amounts)] = Field(default={})
    gang: bool = False
    kind: str = "Job"
    """Kind of the pods' owner: a Job's pods are never moved, a ReplicaSet's may be."""
    annotations: _Text = Field(default={})
    node_selector: _Text = Field(default={})
    tolerations: tuple[dict[str, str], ...] = Field(default=(), strict=False)
    priority: int = Field(default=0, ge=-(2**31), lt=2**31)


@dataclass(frozen=True)
class Arrival:
    """A pod as the API would return it. at_s: seconds from the start of the trace. runs_s: how long it runs."""

    at_s: float
    runs_s: float
    pod: Mapping[str, Any]
    gangs: Gangs = field(default_factory=dict)


def read(lines: Iterable[str], file: str) -> tuple[Arrival, ...]:
    """Return the arrivals in order of time. Errors: raises RefusedError with every problem."""
    arrivals: list[Arrival] = []
    problems: list[str] = []
    names: dict[str, int] = {}
    pods = 0
    for number, text in enumerate(lines, start=1):
        if not text.strip() or text.lstrip().startswith("#"):
            continue
        try:
            line = Line.model_validate(json.loads(text, parse_constant=_constant))
        except ValidationError as error:
            problems += [
                f"{file}:{number}: {_place(each)}{each['msg'].removeprefix('Value error, ')}" for each in error.errors()
            ]
            continue
        except (ValueError, RecursionError) as error:
            problems.append(f"{file}:{number}: not a JSON object: {error}")
            continue
        if line.name in names:
            problems.append(f"{file}:{number}: name {line.name} is already used in line {names[line.name]}")
        names[line.name] = number
        pods += line.count
        if pods > MOST_PODS:
            problems.append(
                f"{file}:{number}: with this line the trace has {pods:,} pods; at most {MOST_PODS:,} are allowed"
            )
            break
        arrivals += _arrivals(line)
    if problems:
        raise RefusedError("\n".join(problems), code="bad-trace")
    return tuple(sorted(arrivals, key=lambda each: (each.at_s, each.pod["metadata"]["name"])))


def lines(path: Path) -> list[str]:
    """Return the lines of a file. Errors: raises RefusedError if it can't be read."""
    try:
        return read_text(path, MOST_BYTES).splitlines()
    except UnreadableError as error:
        raise RefusedError(str(error), code="bad-trace") from None


def _constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number")


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
        spec = {
            "containers": [{"resources": {"requests": dict(line.requests)}}],
            "nodeSelector": dict(line.node_selector),
            "tolerations": list(line.tolerations),
            "priority": line.priority,
            "schedulingGroup": {"podGroupName": line.name} if line.gang else None,
        }
        yield Arrival(line.at / 1000, line.runs / 1000, {"metadata": metadata, "spec": spec, "status": {}}, gangs)
