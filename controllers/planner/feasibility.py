"""Whether a pod may run on a kind of host, and all obstacles if not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from cluster.allocations import TEAM_KEY
from controllers.planner.resources import APART, describe
from controllers.planner.supply import Labels, PoolSupply, Taint
from controllers.planner.wishes import Shape, Spot, Toleration


class ObstacleKind(IntEnum):
    """Kinds of obstacles, in the order in which they are checked and reported."""

    LABELS = 1
    TAINT = 2
    SPOT = 3
    SIZE = 4
    CEILING = 5


@dataclass(frozen=True, slots=True)
class Obstacle:
    """An obstacle. text: follows the name of a pool, as in ``h100 isn't openai.org/gpu=a100``."""

    kind: ObstacleKind
    text: str
    resource: str = ""
    requested: int = 0
    there: int = 0


@dataclass(frozen=True)
class Ground:
    """Hosts that are equal to every pod: of one pool, with the same labels and taints."""

    pool: PoolSupply
    labels: Labels
    taints: tuple[Taint, ...]


def obstacles(shape: Shape, ground: Ground) -> tuple[Obstacle, ...]:
    """Return everything that keeps such a pod from an empty host there, in the order of reporting."""
    return tuple(_obstacles(shape, ground))


def _obstacles(shape: Shape, ground: Ground) -> Iterator[Obstacle]:
    labels = dict(ground.labels)
    if lacking := _unmet(shape, labels):
        yield Obstacle(ObstacleKind.LABELS, f"isn't {lacking}")
    for taint in ground.taints:
        if not any(_tolerates(toleration, taint) for toleration in shape.tolerations):
            whose = f"belongs to team {taint.value}" if taint.key == TEAM_KEY else "keeps other pods away"
            yield Obstacle(ObstacleKind.TAINT, f"{whose} by its taint {taint}")
    if ground.pool.spot and shape.spot is Spot.NEVER:
        yield Obstacle(ObstacleKind.SPOT, "is spot, and the pod must not run on spot machines")
    if not ground.pool.spot and shape.spot is Spot.ONLY:
        yield Obstacle(ObstacleKind.SPOT, "isn't spot, and the pod must run only on spot machines")
    yield from _size(shape, ground.pool)
    alike = how_many(shape, ground.pool)
    if shape.ceiling is not None and alike and ground.pool.price > shape.ceiling * alike:
        price, most = ground.pool.price / alike / 1e6, shape.ceiling / 1e6
        yield Obstacle(
            ObstacleKind.CEILING, f"costs {price:.2f} $/h per pod, above the pod's ceiling of {most:.2f} $/h"
        )


def _size(shape: Shape, pool: PoolSupply) -> Iterator[Obstacle]:
    for name, needed in shape.size.amounts:
        there = 1 if name.startswith(APART) else pool.room[name]
        if needed > there:
            text = f"has room for {describe(name, there)} per host"
            yield Obstacle(ObstacleKind.SIZE, text, name, needed, there)


def how_many(shape: Shape, pool: PoolSupply) -> int:
    """Return how many pods of the shape fit on an empty host of the pool."""
    return min((_room(pool, name) // needed for name, needed in shape.size.amounts), default=0)


def _room(pool: PoolSupply, name: str) -> int:
    return 1 if name.startswith(APART) else pool.room[name]


def _unmet(shape: Shape, labels: Mapping[str, str]) -> str:
    """Return the unmet requirements of the nearest alternative; "" if an alternative is met."""
    if not shape.needs:
        return ""
    lacking = [[need for need in term if not need.met(labels)] for term in shape.needs]
    nearest = min(lacking, key=len)
    return " and ".join(map(str, nearest))


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    return (
        toleration.key in (None, taint.key)
        and toleration.value in (None, taint.value)
        and toleration.effect in (None, taint.effect)
    )
