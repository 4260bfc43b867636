"""Two other ways to choose hosts for pods, written from their descriptions, for comparison with the planner.

Like the planner, both respect capacities, labels, taints and quotas. They ignore gangs, racks and soft costs, which makes
their task easier and their plans cheaper than they could be in use.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from controllers.planner import Pod, PoolSupply, Shape, Snapshot
from controllers.planner.feasibility import Ground, how_many, obstacles

SPARE = 5
"""Machines that the autoscaler of 2017 added to each group on top of those that it needed (its default of over_provision)."""


@dataclass
class Packed:
    """A plan. hosts: number by pool. spare: number of unneeded hosts by pool. unplaced: pods for which no quota was left."""

    prices: dict[str, int]
    hosts: dict[str, int] = field(default_factory=dict)
    unplaced: int = 0
    spare: dict[str, int] = field(default_factory=dict)

    @property
    def cost(self) -> int:
        """Return the cost in millionths of a dollar per hour."""
        return sum(self.prices[pool] * count for pool, count in self.hosts.items())

    @property
    def needed(self) -> int:
        """Return the cost without spare hosts."""
        return self.cost - sum(self.prices[pool] * count for pool, count in self.spare.items())


class _Host:
    __slots__ = ("free", "pool")

    def __init__(self, pool: PoolSupply) -> None:
        self.pool = pool
        self.free = dict(pool.room.amounts)

    def take(self, size: Sequence[tuple[str, int]]) -> bool:
        free = self.free
        for name, amount in size:
            if free.get(name, 0) < amount:
                return False
        for name, amount in size:
            free[name] -= amount
        return True


def may(shape: Shape, pool: PoolSupply) -> bool:
    return not obstacles(shape, Ground(pool, pool.labels, pool.taints))


def first_fit_decreasing(snapshot: Snapshot) -> Packed:
    """Place the largest pods first, each on the first open host with room, else on a new host where its share is cheapest."""
    packed = Packed({pool.name: pool.price for pool in snapshot.pools})
    counts: dict[Shape, int] = {}
    for pod in snapshot.pods:
        counts[pod.shape] = counts.get(pod.shape, 0) + 1
    largest = {name: max(pool.room[name] for pool in snapshot.pools) for pool in snapshot.pools for name in pool.room}
    hosts: list[_Host] = []
    for shape in sorted(counts, key=lambda shape: -max(n / largest[name] for name, n in shape.size.amounts)):
        candidates = [pool for pool in snapshot.pools if may(shape, pool)]
        candidates.sort(key=lambda pool: pool.price / how_many(shape, pool))
        usable = [host for host in hosts if host.pool in candidates]
        at = 0  # earlier hosts had no room for an identical pod, and never will
        for _ in range(counts[shape]):
            while at < len(usable) and not usable[at].take(shape.size.amounts):
                at += 1
            if at == len(usable):
                pool = next((pool for pool in candidates if packed.hosts.get(pool.name, 0) < pool.most), None)
                if pool is None:
                    packed.unplaced += 1
                    continue
                packed.hosts[pool.name] = packed.hosts.get(pool.name, 0) + 1
                hosts.append(_Host(pool))
                usable.append(hosts[-1])
                usable[-1].take(shape.size.amounts)
    return packed


def autoscaler_of_2017(snapshot: Snapshot) -> Packed:
    """Group pods by selector and place them in order, first fit, on hosts of one type at a time, cheapest type first.

    Pods that fit no host of a type, or exceed its quota, go to the next type. Each used type gets spare hosts.
    """
    packed = Packed({pool.name: pool.price for pool in snapshot.pools})
    groups: dict[object, list[Pod]] = {}
    for pod in snapshot.pods:
        groups.setdefault((pod.shape.needs, pod.shape.tolerations), []).append(pod)
    for pods in groups.values():
        left: Iterable[Pod] = pods
        for pool in sorted(snapshot.pools, key=lambda pool: pool.price):
            left = _one_type(packed, pool, left)
        packed.unplaced += len(list(left))
    for pool in snapshot.pools:
        if used := packed.hosts.get(pool.name, 0):
            packed.spare[pool.name] = min(pool.most - used, SPARE)
            packed.hosts[pool.name] += packed.spare[pool.name]
    return packed


def _one_type(packed: Packed, pool: PoolSupply, pods: Iterable[Pod]) -> list[Pod]:
    """Put pods on new hosts of the pool. Return the pods that don't fit."""
    allowed: dict[int, bool] = {}
    hosts: list[_Host] = []
    left: list[Pod] = []
    for pod in pods:
        if id(pod.shape) not in allowed:
            allowed[id(pod.shape)] = may(pod.shape, pool)
        if not allowed[id(pod.shape)]:
            left.append(pod)
            continue
        size = pod.shape.size.amounts
        if any(host.take(size) for host in hosts):
            continue
        if packed.hosts.get(pool.name, 0) >= pool.most:
            left.append(pod)
            continue
        packed.hosts[pool.name] = packed.hosts.get(pool.name, 0) + 1
        hosts.append(_Host(pool))
        hosts[-1].take(size)
    return left
