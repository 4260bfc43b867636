"""A snapshot as numbers: kinds of pods, grounds and rooms, with what may go where and what it costs there.

All numbers are integers: amounts in the units of `resources`, money in millionths of a dollar an hour. So sums are exact, and equal
snapshots give equal plans.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from controllers.planner.feasibility import Ground, Obstacle, how_many, obstacles
from controllers.planner.policy import Policy
from controllers.planner.resources import APART, Resources
from controllers.planner.supply import HostSupply, Place, PoolSupply, Snapshot
from controllers.planner.wishes import Gang, Pod, Shape

Vector = tuple[int, ...]
Load = tuple[tuple[int, int], ...]
"""((kind, number of pods on the host), ...)."""


@dataclass(frozen=True)
class PodKind:
    """Pods that are alike: of one shape, and single or in gangs of one size, which share the risk of spot hosts.

    within: their gang, if its hosts must be in one domain; then no other pods are like them.
    """

    shape: Shape
    gang_size: int
    within: str = ""


@dataclass(frozen=True, slots=True)
class Room:
    """Hosts with exactly the same free room. offer: the one by which they are to be added, -1 for existing hosts."""

    ground: int
    free: Vector
    hosts: tuple[str, ...]
    count: int
    load: Load = ()
    offer: int = -1


@dataclass(frozen=True, slots=True)
class Offer:
    """Hosts of a pool that could be added at one of its places. left: how many."""

    pool: int
    place: Place
    ground: int
    room: Vector
    price: int
    left: int


@dataclass
class Tables:
    """See the module. `pods[k]`: the pods of kind k, in the snapshot's order."""

    snapshot: Snapshot
    policy: Policy
    kinds: list[PodKind] = field(default_factory=list)
    pods: list[list[Pod]] = field(default_factory=list)
    grounds: list[Ground] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._group_pods()
        self._ground_index: dict[Ground, int] = {}
        self.offers = tuple(self._offers())
        self.pool_left = tuple(self._left(pool) for pool in self.snapshot.pools)
        self.rooms = tuple(self._rooms())
        self.dims = self._dims

    def _group_pods(self) -> None:
        gangs = {gang.name: gang for gang in self.snapshot.gangs}
        by_kind: dict[PodKind, int] = {}
        numbers: dict[
            tuple[int, str | None], int
        ] = {}  # most shapes are the same object; comparing them would cost more
        for pod in self.snapshot.pods:
            number = numbers.get((id(pod.shape), pod.gang))
            if number is None:
                gang = gangs[pod.gang] if pod.gang else None
                kind = PodKind(pod.shape, gang.members if gang else 1, gang.name if gang and gang.within else "")
                number = numbers[id(pod.shape), pod.gang] = by_kind.setdefault(kind, len(self.kinds))
                if number == len(self.kinds):
                    self.kinds.append(kind)
                    self.pods.append([])
            self.pods[number].append(pod)

    @cached_property
    def _dims(self) -> tuple[str, ...]:
        return tuple(sorted({name for kind in self.kinds for name in kind.shape.size}))

    @cached_property
    def sizes(self) -> list[Vector]:
        return [tuple(kind.shape.size[name] for name in self._dims) for kind in self.kinds]

    @cached_property
    def steps(self) -> list[tuple[tuple[int, int], ...]]:
        """Return, for each kind, (dimension, amount) of what it takes."""
        return [tuple((at, amount) for at, amount in enumerate(size) if amount) for size in self.sizes]

    def _vector(self, room: Resources, taken: Iterable[str] = ()) -> Vector:
        apart = {APART + group for group in taken}
        return tuple(int(name not in apart) if name.startswith(APART) else room[name] for name in self._dims)

    @cached_property
    def _there(self) -> Counter[tuple[str, str]]:
        return Counter((host.pool, host.place) for host in self.snapshot.hosts)

    def _left(self, pool: PoolSupply) -> int:
        return max(0, pool.most - sum(self._there[pool.name, place.name] for place in pool.grounds))

    def ground(self, pool: PoolSupply, place: Place, host: HostSupply | None = None) -> int:
        """Return the number of the ground of the pool's hosts at this place."""
        own = dict(pool.labels) | dict(place.labels) | (dict(host.labels) if host else {})
        taints = (*pool.taints, *(host.taints if host else ()))
        ground = Ground(pool, tuple(sorted(own.items())), tuple(dict.fromkeys(taints)))
        number = self._ground_index.setdefault(ground, len(self.grounds))
        if number == len(self.grounds):
            self.grounds.append(ground)
        return number

    def _offers(self) -> Iterable[Offer]:
        for number, pool in enumerate(self.snapshot.pools):
            price = round(pool.price * (1 + self._risk(pool)))
            for place in pool.grounds:
                left = min(max(0, place.most - self._there[pool.name, place.name]), self._left(pool))
                yield Offer(number, place, self.ground(pool, place), self._vector(pool.room), price, left)

    def _risk(self, pool: PoolSupply) -> float:
        """Return what interruptions add to an hour's price, as a share of it."""
        return pool.interruptions * self.policy.redo_h if pool.spot else 0.0

    def _rooms(self) -> Iterable[Room]:
        places = {(pool.name, place.name): (pool, place) for pool in self.snapshot.pools for place in pool.grounds}
        alike: dict[tuple[int, Vector], list[str]] = {}
        for host in self.snapshot.hosts:
            if host.open:
                key = (self.ground(*places[host.pool, host.place], host), self._vector(host.free, host.apart))
                alike.setdefault(key, []).append(host.name)
        for (ground, free), names in alike.items():
            yield Room(ground, free, tuple(names), len(names))

    @cached_property
    def pool_of(self) -> list[int]:
        """Return the number of the pool, by ground."""
        numbers = {pool.name: number for number, pool in enumerate(self.snapshot.pools)}
        return [numbers[ground.pool.name] for ground in self.grounds]

    @cached_property
    def against(self) -> list[list[tuple[Obstacle, ...]]]:
        """Return all obstacles, by [kind][ground]."""
        return [[obstacles(kind.shape, ground) for ground in self.grounds] for kind in self.kinds]

    @cached_property
    def may(self) -> list[list[bool]]:
        """Return whether an empty host takes such a pod, by [kind][ground]."""
        return [[not blocked for blocked in row] for row in self.against]

    @cached_property
    def soft(self) -> list[list[int]]:
        """Return what a pod costs besides its host (preferences, and a gang's risk on spot hosts), by [kind][ground]."""
        return [[self._soft(kind, ground) for ground in self.grounds] for kind in self.kinds]

    def _soft(self, kind: PodKind, ground: Ground) -> int:
        has = dict(ground.labels)
        worth = sum(wish.worth for wish in kind.shape.preferences if has.get(wish.key) not in wish.values)
        # Losing one member stops all others, so each member bears its part of the whole gang's risk.
        alike = how_many(kind.shape, ground.pool)
        others = -(-kind.gang_size // alike) - 1 if alike else 0
        return worth + (round(self._risk(ground.pool) * ground.pool.price * others / alike) if others else 0)

    @cached_property
    def gangs(self) -> dict[str, Gang]:
        return {gang.name: gang for gang in self.snapshot.gangs}
