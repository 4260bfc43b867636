"""What waits for room: pods, the shape that alike pods share, and gangs that start together or not at all."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from controllers.planner.resources import APART, PODS, Resources


class Operator(StrEnum):
    """Of a node selector's requirement, as Kubernetes names them."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on a host's labels. Gt and Lt compare whole numbers with the first value."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def met(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case Operator.IN:
                return value in self.values
            case Operator.NOT_IN:
                return value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
        # The API takes any text here; what is no number is met by no host, as the scheduler has it.
        if value is None or not all(re.fullmatch("-?[0-9]{1,18}", each) for each in (value, *self.values[:1])):
            return False
        ours, theirs = int(value), int(self.values[0])
        return ours > theirs if self.operator is Operator.GT else ours < theirs

    def __str__(self) -> str:
        match self.operator:
            case Operator.EXISTS:
                return self.key
            case Operator.DOES_NOT_EXIST:
                return f"no {self.key}"
            case Operator.IN if len(self.values) == 1:
                return f"{self.key}={self.values[0]}"
        return f"{self.key} {self.operator} {','.join(self.values)}"


@dataclass(frozen=True, slots=True)
class Toleration:
    """As of a pod. What it doesn't say it tolerates all of: keys, values of the key, effects."""

    key: str | None = None
    value: str | None = None
    effect: str | None = None


@dataclass(frozen=True, slots=True)
class Preference:
    """A wish that may be bought off: a host whose label `key` has none of `values` costs `worth` more for each pod.

    worth: millionths of a dollar an hour. Cloud, region, GPU kind and nearness to data are labels of pools.
    """

    key: str
    values: tuple[str, ...]
    worth: int


class Spot(StrEnum):
    """Whether a pod goes to machines that may be taken away."""

    ANY = "any"
    NEVER = "never"
    ONLY = "only"


@dataclass(frozen=True)
class Shape:
    """All that decides where a pod may go and what it costs there. Pods of one shape are alike.

    needs: one of these alternatives must hold, each with all of its requirements; none: any host does.
    ceiling: the most that an hour of its part of a host may cost, in millionths of a dollar; its part is the price
    of an empty host over how many such pods it takes.
    apart: the group whose pods never share a host.
    """

    requests: Resources
    needs: tuple[tuple[Requirement, ...], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    team: str = ""
    preferences: tuple[Preference, ...] = ()
    spot: Spot = Spot.ANY
    ceiling: int | None = None
    apart: str | None = None

    @cached_property
    def size(self) -> Resources:
        """What one pod takes of a host, its place among the pods included."""
        more = {PODS: 1} | ({APART + self.apart: 1} if self.apart else {})
        return Resources.of(dict(self.requests.amounts) | more)


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod without a host. since_s: when it was made, seconds since 1970."""

    name: str
    shape: Shape
    since_s: int
    priority: int = 0
    gang: str | None = None


@dataclass(frozen=True, slots=True)
class Gang:
    """Pods that start together or not at all.

    members: how many still have to be placed; with fewer there, it waits for them.
    within: the label whose value all of their hosts must share (a rack, a rail, an NVLink domain).
    """

    name: str
    members: int
    within: str | None = None
