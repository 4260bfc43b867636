"""Whether a pod may go to a host of a kind, and all that speaks against it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from cluster.allocations import TEAM_KEY
from controllers.planner.resources import APART, describe
from controllers.planner.supply import Labels, Pool, Taint
from controllers.planner.wishes import Shape, Spot, Toleration


class Kind(IntEnum):
    """What stands in a pod's way, in the order in which it is looked for and told."""

    LABELS = 1
    TAINT = 2
    SPOT = 3
    SIZE = 4
    CEILING = 5


@dataclass(frozen=True, slots=True)
class Obstacle:
    """text follows the name of a pool: ``h100 has no label openai.org/gpu=a100``."""

    kind: Kind
    text: str
    resource: str = ""
    wanted: int = 0
    there: int = 0


@dataclass(frozen=True)
class Ground:
    """Hosts that all pods see alike: of one pool, with the same labels and taints."""

    pool: Pool
    labels: Labels
    taints: tuple[Taint, ...]


def obstacles(shape: Shape, ground: Ground) -> tuple[Obstacle, ...]:
    """All that keeps such a pod from an empty host there, the first to be told first."""
    return tuple(_obstacles(shape, ground))


def _obstacles(shape: Shape, ground: Ground) -> Iterator[Obstacle]:
    labels = dict(ground.labels)
    if lacking := _unmet(shape, labels):
        yield Obstacle(Kind.LABELS, f"isn't {lacking}")
    for taint in ground.taints:
        if not any(_tolerates(toleration, taint) for toleration in shape.tolerations):
            whose = f"is team {taint.value}'s" if taint.key == TEAM_KEY else "keeps others away"
            yield Obstacle(Kind.TAINT, f"{whose} by its taint {taint}")
    if ground.pool.spot and shape.spot is Spot.NEVER:
        yield Obstacle(Kind.SPOT, "is spot, and it must not be interrupted")
    if not ground.pool.spot and shape.spot is Spot.ONLY:
        yield Obstacle(Kind.SPOT, "isn't spot, and it wants nothing else")
    yield from _size(shape, ground.pool)
    alike = how_many(shape, ground.pool)
    if shape.ceiling is not None and alike and ground.pool.price > shape.ceiling * alike:
        price, most = ground.pool.price / alike / 1e6, shape.ceiling / 1e6
        yield Obstacle(Kind.CEILING, f"costs {price:.2f} $/h for each such pod, above its ceiling of {most:.2f}")


def _size(shape: Shape, pool: Pool) -> Iterator[Obstacle]:
    for name, wanted in shape.size.amounts:
        there = 1 if name.startswith(APART) else pool.room[name]
        if wanted > there:
            text = f"has room for {describe(name, there)} a host"
            yield Obstacle(Kind.SIZE, text, name, wanted, there)


def how_many(shape: Shape, pool: Pool) -> int:
    """Pods of the shape that an empty host of the pool takes."""
    return min((_room(pool, name) // wanted for name, wanted in shape.size.amounts), default=0)


def _room(pool: Pool, name: str) -> int:
    return 1 if name.startswith(APART) else pool.room[name]


def _unmet(shape: Shape, labels: Mapping[str, str]) -> str:
    """What of the alternative that comes nearest isn't met; empty when one is met as a whole."""
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
