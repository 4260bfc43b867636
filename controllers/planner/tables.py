"""A snapshot as numbers: kinds of pods, grounds, and rooms, with what may go where and what it costs there.

Everything is whole: amounts in the units of `resources`, money in millionths of a dollar an hour. So sums are exact,
and equal snapshots make equal plans.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from controllers.planner.feasibility import Ground, Obstacle, how_many, obstacles
from controllers.planner.policy import Policy
from controllers.planner.resources import APART, Resources
from controllers.planner.supply import Host, Place, Pool, Snapshot
from controllers.planner.wishes import Gang, Pod, Shape

Vector = tuple[int, ...]
Load = tuple[tuple[int, int], ...]
"""Kinds of pods on a host, each with how many of them."""


@dataclass(frozen=True)
class PodKind:
    """Pods that are alike: of one shape, and alone or in gangs of one size, who share the risk of spot hosts.

    within: the gang that they are of, when its hosts must lie together; no other's pods are like them then.
    """

    shape: Shape
    gang_size: int
    within: str = ""


@dataclass(frozen=True, slots=True)
class Room:
    """Hosts alike to the last megabyte. offer: the one by which they are to be added, -1 when they are there."""

    ground: int
    free: Vector
    hosts: tuple[str, ...]
    count: int
    load: Load = ()
    offer: int = -1


@dataclass(frozen=True, slots=True)
class Offer:
    """Hosts that could be added: so many of a pool at one of its places."""

    pool: int
    place: Place
    ground: int
    room: Vector
    price: int
    left: int


@dataclass
class Tables:
    """See the module. `pods[k]`: the pods of kind k, as they stand in the snapshot."""

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
        known: dict[PodKind, int] = {}
        seen: dict[tuple[int, str | None], int] = {}  # shapes are mostly the same object; to compare them costs more
        for pod in self.snapshot.pods:
            number = seen.get((id(pod.shape), pod.gang))
            if number is None:
                gang = gangs[pod.gang] if pod.gang else None
                kind = PodKind(pod.shape, gang.members if gang else 1, gang.name if gang and gang.within else "")
                number = seen[id(pod.shape), pod.gang] = known.setdefault(kind, len(self.kinds))
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
        """Of each kind, the dimensions that it takes something of, with how much."""
        return [tuple((at, amount) for at, amount in enumerate(size) if amount) for size in self.sizes]

    def _vector(self, room: Resources, taken: Iterable[str] = ()) -> Vector:
        apart = {APART + group for group in taken}
        return tuple(int(name not in apart) if name.startswith(APART) else room[name] for name in self._dims)

    @cached_property
    def _there(self) -> Counter[tuple[str, str]]:
        return Counter((host.pool, host.place) for host in self.snapshot.hosts)

    def _left(self, pool: Pool) -> int:
        return max(0, pool.most - sum(self._there[pool.name, place.name] for place in pool.grounds))

    def ground(self, pool: Pool, place: Place, host: Host | None = None) -> int:
        """The number of the ground that hosts of the pool at the place stand on."""
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

    def _risk(self, pool: Pool) -> float:
        """What interruptions add to an hour's price, as a share of it."""
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
        """pool_of[ground]: the number of its pool."""
        numbers = {pool.name: number for number, pool in enumerate(self.snapshot.pools)}
        return [numbers[ground.pool.name] for ground in self.grounds]

    @cached_property
    def against(self) -> list[list[tuple[Obstacle, ...]]]:
        """against[kind][ground]: all obstacles."""
        return [[obstacles(kind.shape, ground) for ground in self.grounds] for kind in self.kinds]

    @cached_property
    def may(self) -> list[list[bool]]:
        """may[kind][ground]: whether an empty host there takes such a pod."""
        return [[not found for found in row] for row in self.against]

    @cached_property
    def soft(self) -> list[list[int]]:
        """soft[kind][ground]: what a pod there costs beside its host: preferences, and a gang's risk on spot hosts."""
        return [[self._soft(kind, ground) for ground in self.grounds] for kind in self.kinds]

    def _soft(self, kind: PodKind, ground: Ground) -> int:
        has = dict(ground.labels)
        worth = sum(wish.worth for wish in kind.shape.preferences if has.get(wish.key) not in wish.values)
        # A member that is taken away stops all others: each member's part of the risk is the whole gang's.
        alike = how_many(kind.shape, ground.pool)
        others = -(-kind.gang_size // alike) - 1 if alike else 0
        return worth + (round(self._risk(ground.pool) * ground.pool.price * others / alike) if others else 0)

    @cached_property
    def gangs(self) -> dict[str, Gang]:
        return {gang.name: gang for gang in self.snapshot.gangs}
