"""What a planner answers: hosts to add, where every pod goes or why it waits, what it costs, and how good that is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from controllers.planner.certificate import Certificate


@dataclass(frozen=True)
class Budget:
    """Processor seconds for an exact plan, and the clock that they are read from (time.process_time)."""

    seconds: float
    clock: Callable[[], float]


class Fate(StrEnum):
    """What becomes of a pod."""

    ROOM = "room"
    """It fits on a host that is there."""
    NEW = "new"
    """It fits on a host that the plan adds."""
    WAITING = "waiting"
    NEVER = "never"
    """Nothing that may happen by itself lets it start."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A pod's fate and the reason, one sentence that follows its name: ``web-1: on host-3 of pool cpu``.

    host: where it goes; hosts to be added have the names of the plan's.
    """

    fate: Fate
    reason: str
    host: str = ""


@dataclass(frozen=True, slots=True)
class NewHost:
    """A host to be added. name: unique in the plan; whoever adds it gives it its own. pods: who it is for."""

    name: str
    pool: str
    place: str
    pods: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """Money is in millionths of a dollar an hour.

    bill: what the hosts to add cost. weighed: the same with spot risk and unmet preferences, which is what is made
    small. bound: no plan that places the same pods weighs less; None when nobody asked. cut_short: the time for an
    exact plan was over before it was exact.
    """

    hosts: tuple[NewHost, ...]
    verdicts: Mapping[str, Verdict]
    bill: int = 0
    weighed: int = 0
    bound: int | None = None
    certificate: Certificate | None = None
    exact: bool = False
    cut_short: bool = False

    @property
    def gap(self) -> float | None:
        """How much of the weighed cost the bound leaves open, as a share of the bound."""
        if self.bound is None or not self.weighed:
            return None if self.bound is None else 0.0
        return (self.weighed - self.bound) / self.bound if self.bound else float("inf")

    def added(self) -> dict[tuple[str, str], int]:
        """(pool, place) -> hosts to add."""
        counts: dict[tuple[str, str], int] = {}
        for host in self.hosts:
            counts[host.pool, host.place] = counts.get((host.pool, host.place), 0) + 1
        return counts
