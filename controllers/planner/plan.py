"""The planner's result: hosts to add, where every pod goes or why it waits, the cost, and its distance from the bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from controllers.planner.certificate import Certificate


@dataclass(frozen=True)
class Budget:
    """Processor seconds for an exact plan, and the clock that measures them (time.process_time)."""

    seconds: float
    clock: Callable[[], float]


class Fate(StrEnum):
    """The fate of a pod."""

    ROOM = "room"
    """It fits on an existing host."""
    NEW = "new"
    """It fits on a host that the plan adds."""
    WAITING = "waiting"
    NEVER = "never"
    """It can't start unless somebody changes something."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A pod's fate and the reason, one sentence that follows its name: ``web-1: on host-3 of pool cpu``.

    host: where it goes; the name of a `NewHost` for a host to be added.
    """

    fate: Fate
    reason: str
    host: str = ""


@dataclass(frozen=True, slots=True)
class NewHost:
    """A host to be added. name: unique in the plan; the real host gets another name. pods: those that it is for."""

    name: str
    pool: str
    place: str
    pods: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """Money is in millionths of a dollar an hour.

    bill: cost of the hosts to add. weighed: the same plus spot risk and unmet preferences, which the planner minimises. bound: no plan
    for the same pods weighs less; None if no exact plan was requested. cut_short: the time for an exact plan ran out.
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
        """Return the distance between weighed cost and bound, as a share of the bound."""
        if self.bound is None or not self.weighed:
            return None if self.bound is None else 0.0
        return (self.weighed - self.bound) / self.bound if self.bound else float("inf")

    def added(self) -> dict[tuple[str, str], int]:
        """Return (pool, place) -> number of hosts to add."""
        counts: dict[tuple[str, str], int] = {}
        for host in self.hosts:
            counts[host.pool, host.place] = counts.get((host.pool, host.place), 0) + 1
        return counts
