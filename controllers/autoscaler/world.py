"""A cluster at one moment, as the autoscaler sees it. Pure: `look` reads it from a cluster, and the simulation generates it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from controllers.autoscaler.gang import Membership
from controllers.autoscaler.groups import Group
from controllers.planner import PoolSupply, Shape, Taint
from controllers.planner.resources import Resources
from operations.breaker import ClusterHealth

BY = "autoscaler"
"""The name in marks that the autoscaler puts on nodes."""


@dataclass(frozen=True)
class Resident:
    """A pod on a host.

    keeps: why its host may not be removed while it runs there, "" if the pod may move. daemon: it runs on every host and is not
    counted as use. ending: it was deleted, but still exists.
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

    allocatable: what all its pods together may use. taints: without those of a starting node. mark: the verb that took it out of
    service, "" if none did. keep: whether an annotation keeps it. since_s: Unix time when it became Ready, or was created.
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
        """Whether somebody other than the autoscaler cordoned it. The autoscaler may undo its own cordon."""
        return self.cordoned and self.mark != BY

    @cached_property
    def pods(self) -> tuple[Resident, ...]:
        """Return its pods, without daemons."""
        return tuple(each for each in self.residents if not each.daemon)

    def free(self) -> Resources:
        """Return what its pods leave free."""
        left = dict(self.allocatable.amounts)
        for each in self.residents:
            for name, amount in each.shape.size.amounts:
                if name in left:
                    left[name] -= amount
        return Resources.of({name: max(amount, 0) for name, amount in left.items()})


@dataclass(frozen=True)
class Waiting:
    """A pod that the scheduler found no room for.

    gang: None for a single pod. refused: why no machine is ordered for it, "" if one may be. complaints: problems with its
    annotations and PodGroup. scheduler_message: the scheduler's message.
    """

    name: str
    uid: str
    shape: Shape
    since_s: int
    priority: int = 0
    gang: Membership | None = None
    refused: str = ""
    complaints: tuple[str, ...] = ()
    scheduler_message: str = ""


@dataclass(frozen=True)
class Supply:
    """A pool as the planner knows it, with further facts.

    pool.most: the spec's max; for a site, its number of machines. grows: whether the autoscaler may add and remove hosts.
    note: what is estimated or unknown, for people.
    """

    pool: PoolSupply
    gpu: bool = False
    grows: bool = True
    note: str = ""


@dataclass(frozen=True)
class World:
    """A cluster at one moment. now_s: Unix time by the API server's clock. missing: sources that did not answer; if any, nothing is decided."""

    now_s: float
    supplies: Mapping[str, Supply]
    groups: Mapping[str, Group]
    nodes: tuple[Node, ...]
    waiting: tuple[Waiting, ...]
    fleet: ClusterHealth
    missing: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()

    @cached_property
    def by_node(self) -> Mapping[str, Node]:
        return {node.name: node for node in self.nodes}
