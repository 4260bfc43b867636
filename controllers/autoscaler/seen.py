"""A cluster at one moment, in the autoscaler's words. Pure: what reads it is in `look`, and the simulation makes its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from controllers.autoscaler.gang import Membership
from controllers.autoscaler.groups import Group
from controllers.planner import Pool, Shape, Taint
from controllers.planner.resources import Resources
from operations.breaker import Fleet

BY = "autoscaler"
"""Who marks nodes."""


@dataclass(frozen=True)
class Resident:
    """A pod on a host.

    keeps: why its host may not be taken away while it is there, "" where it may move. daemon: comes with each host and counts for
    nothing. ending: it was deleted, and is still there.
    """

    name: str
    shape: Shape
    daemon: bool = False
    keeps: str = ""
    ending: bool = False
    gang: str | None = None


@dataclass(frozen=True)
class Node:
    """A Node of a pool.

    allocatable: what all of its pods may take together. taints: without those of a node that starts. lacks: devices that its
    pool's machines have and that it does not offer yet. mark: the verb that took it out of service, "" where none did.
    keep: whether its annotation keeps it. since_s: Unix time at which it became Ready, or was made.
    """

    name: str
    pool: str
    allocatable: Resources
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    residents: tuple[Resident, ...] = ()
    ready: bool = True
    starting: bool = False
    cordoned: bool = False
    mark: str = ""
    keep: bool = False
    since_s: float = 0.0

    @property
    def keep_away(self) -> bool:
        """Whether it is cordoned, and not by the autoscaler, which may still give it back."""
        return self.cordoned and self.mark != BY

    @cached_property
    def pods(self) -> tuple[Resident, ...]:
        """Without daemons."""
        return tuple(each for each in self.residents if not each.daemon)

    def free(self) -> Resources:
        """What its pods leave of it."""
        left = dict(self.allocatable.amounts)
        for each in self.residents:
            for name, amount in each.shape.size.amounts:
                if name in left:
                    left[name] -= amount
        return Resources.of({name: max(amount, 0) for name, amount in left.items()})


@dataclass(frozen=True)
class Waiting:
    """A pod that the scheduler found no room for.

    uid: the API's own. gang: None for a pod of its own. refused: why nothing is bought for it, "" where it may be.
    complaints: what is wrong with what it says. said: the scheduler's words.
    """

    name: str
    uid: str
    shape: Shape
    since_s: int
    priority: int = 0
    gang: Membership | None = None
    refused: str = ""
    complaints: tuple[str, ...] = ()
    said: str = ""


@dataclass(frozen=True)
class Supply:
    """A pool as the planner knows it, and what else is known of it.

    pool.most: the spec's max; of a site, its machines. grows: whether the autoscaler may add and remove hosts. note: what is guessed
    or not known of it, for people.
    """

    pool: Pool
    gpu: bool = False
    grows: bool = True
    note: str = ""


@dataclass(frozen=True)
class World:
    """now_s: Unix time, by the API server's clock. missing: what did not answer; then nothing is decided."""

    now_s: float
    supplies: Mapping[str, Supply]
    groups: Mapping[str, Group]
    nodes: tuple[Node, ...]
    waiting: tuple[Waiting, ...]
    fleet: Fleet
    missing: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()

    @cached_property
    def by_node(self) -> Mapping[str, Node]:
        return {node.name: node for node in self.nodes}
