"""What waits for room: pods, the shape that equal pods share, and gangs that start together or not at all."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from controllers.planner.resources import APART, PODS, Resources


class Operator(StrEnum):
    """Operators of a node selector's requirement, as Kubernetes names them."""

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
        # The API accepts any text here. Like in the scheduler, no host meets a value that is not a number.
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
    """A pod's toleration. A missing key, value or effect matches all keys, values or effects."""

    key: str | None = None
    value: str | None = None
    effect: str | None = None


@dataclass(frozen=True, slots=True)
class Preference:
    """A preference with a price: a host whose label `key` has none of `values` costs `worth` more per pod.

    worth: millionths of a dollar an hour. Cloud, region, GPU kind and nearness to data are labels of pools.
    """

    key: str
    values: tuple[str, ...]
    worth: int


class Spot(StrEnum):
    """Whether a pod may run on spot machines."""

    ANY = "any"
    NEVER = "never"
    ONLY = "only"


@dataclass(frozen=True)
class Shape:
    """Everything that decides where a pod may go and what it costs there. The planner treats pods of one shape alike.

    needs: alternatives, one of which must hold with all its requirements; empty: any host will do.
    ceiling: the most that the pod's share of a host may cost an hour, in millionths of a dollar; the share is the price of an empty
    host divided by the number of such pods that it holds.
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
        """Return what one pod takes of a host, including its place in the host's limit of pods."""
        more = {PODS: 1} | ({APART + self.apart: 1} if self.apart else {})
        return Resources.of(dict(self.requests.amounts) | more)


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod without a host. since_s: Unix time of its creation."""

    name: str
    shape: Shape
    since_s: int
    priority: int = 0
    gang: str | None = None


@dataclass(frozen=True, slots=True)
class Gang:
    """Pods that start together or not at all.

    members: how many pods must still be placed; while fewer exist, the gang waits for them.
    within: the label whose value all their hosts must share (a rack, a rail, an NVLink domain).
    """

    name: str
    members: int
    within: str | None = None
