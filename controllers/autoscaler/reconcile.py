"""Reconciles earlier orders with what exists: which machine is for whom, which host takes work, which did not arrive. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from cluster.autoscaler import Autoscaler
from controllers.autoscaler.groups import Group, Machine
from controllers.autoscaler.memory import Memory, Order
from controllers.autoscaler.supply import learnt
from controllers.autoscaler.words import lasting
from controllers.autoscaler.world import BY, Node, Supply, World
from controllers.planner.resources import Resources

GRACE_S = 180.0
"""From a Ready node until its pods have been placed there: the scheduler retries refused pods within seconds, and images are pulled
only after it has decided. A pod that still waits then waits for another reason."""


_FORGIVEN_S = 6 * 3600.0
"""From the end of a pool's backoff until its earlier failures are forgotten."""


@dataclass(frozen=True)
class Late:
    """A machine that was ordered, never took work, and is to be given back."""

    pool: str
    machine: str
    why: str


def alive(group: Group) -> tuple[Machine, ...]:
    return tuple(each for each in group.machines if each.state != "leaving")


def node_of(world: World, machine: Machine) -> Node | None:
    return world.by_node.get(machine.node) if machine.node else None


def takes_work(node: Node | None) -> bool:
    return node is not None and node.ready and not node.starting


def timeout_s(supply: Supply, settings: Autoscaler) -> float:
    return (settings.spot_timeout if supply.pool.spot else settings.boot_timeout) / 1000


def reconcile(world: World, memory: Memory, settings: Autoscaler) -> tuple[Memory, tuple[Late, ...]]:
    """Return the memory with the current state of orders, and the machines to give back."""
    work = _Reconciling(world, memory, settings)
    for pool, group in world.groups.items():
        if pool in world.supplies:
            work.pool(pool, group)
    foreign = [order for order in memory.orders if order.pool not in world.groups or order.pool not in world.supplies]
    orders = sorted((*work.kept, *foreign), key=lambda order: (order.at_s, order.pool, order.machine, order.pods))
    rests = {pool: rest for pool, rest in work.memory.rests.items() if world.now_s - rest.until_s < _FORGIVEN_S}
    updated = replace(
        memory,
        orders=tuple(orders),
        tries={uid: count for uid, count in work.tries.items() if uid in work.waiting.values()},
        rests=rests,
        machines=_known(world),
        rooms=_rooms(world, memory),
        gone=tuple(sorted(_gone(world, memory))),
    )
    return updated, tuple(work.late)


class _Reconciling:
    """State while reconciling. kept: orders that are still open. memory: with backoffs of pools that did not grow."""

    def __init__(self, world: World, memory: Memory, settings: Autoscaler) -> None:
        self._world, self._settings, self.memory = world, settings, memory
        self.waiting = {pod.name: pod.uid for pod in world.waiting}
        self.tries = dict(memory.tries)
        self.kept: list[Order] = []
        self.late: list[Late] = []

    def pool(self, pool: str, group: Group) -> None:
        machines = {each.id: each for each in alive(group)}
        orders = [each for order in _bound(self.memory, pool, machines) if (each := self._open(order, machines))]
        if group.trouble and group.size > len(machines):
            self._strike(pool, group.trouble)
            # Pods for machines that the cloud says it can't provide are planned elsewhere at once.
            orders = [order for order in orders if order.machine]
        self.kept += orders

    def _open(self, order: Order, machines: Mapping[str, Machine]) -> Order | None:
        """Return the current state of the order, None if it is over."""
        now_s, pool = self._world.now_s, order.pool
        order = replace(order, pods=tuple(pod for pod in order.pods if pod in self.waiting))
        if order.machine and order.machine not in machines:
            self._strike(pool, "a machine disappeared before it took work", order)
            return None
        node = node_of(self._world, machines[order.machine]) if order.machine else None
        if takes_work(node):
            order = order if order.ready_s else replace(order, ready_s=now_s)
            return None if self._is_over(order) else order
        limit_s = timeout_s(self._world.supplies[pool], self._settings)
        if order.ready_s or now_s - order.at_s <= limit_s:
            return order
        why = f"an ordered machine took no work within {lasting(limit_s)}"
        if order.machine and (node is None or not node.pods):
            self.late.append(Late(pool, order.machine, why))
        self._strike(pool, why, order)
        return None

    def _is_over(self, order: Order) -> bool:
        """Whether its pods run, or have had time to. If so, its pool has delivered, and its backoff ends."""
        if order.pods and self._world.now_s - order.ready_s <= GRACE_S:
            return False
        for pod in order.pods:
            self.tries[self.waiting[pod]] = self.tries.get(self.waiting[pod], 0) + 1
        rests = {pool: rest for pool, rest in self.memory.rests.items() if pool != order.pool}
        self.memory = replace(self.memory, rests=rests)
        return True

    def _strike(self, pool: str, why: str, order: Order | None = None) -> None:
        """Put the pool into backoff. An order from before its last backoff says nothing new."""
        rest, first_s = self.memory.rests.get(pool), self._settings.backoff / 1000
        if not (rest and order and order.at_s < rest.until_s - first_s):
            most_s = self._settings.backoff_most / 1000
            self.memory = self.memory.with_strike(pool, self._world.now_s, why, first_s, most_s)


def _gone(world: World, memory: Memory) -> Iterator[str]:
    """Yield nodes whose known machine no longer exists: its cloud took it, or we gave it back."""
    there = {machine.node for group in world.groups.values() for machine in group.machines}
    known_nodes = {node for pool in world.groups for node in memory.machines.get(pool, {}).values()}
    for node in world.nodes:
        ours = node.name in known_nodes or node.name in memory.gone or node.mark == BY
        if ours and node.pool in world.groups and node.name not in there:
            yield node.name


def _bound(memory: Memory, pool: str, machines: Mapping[str, Machine]) -> Iterator[Order]:
    """Yield the pool's orders. New machines are assigned to the oldest orders without one."""
    known_machines = memory.machines.get(pool, {})
    taken = {order.machine for order in memory.orders if order.pool == pool}
    new = iter(sorted(id for id in machines if id not in known_machines and id not in taken))
    for order in memory.orders:
        if order.pool == pool:
            yield order if order.machine else replace(order, machine=next(new, ""))


def _known(world: World) -> dict[str, dict[str, str]]:
    """Return pool -> machine -> node. A machine that is leaving stays known, so that it is not taken for a new one."""
    return {pool: {each.id: each.node for each in group.machines} for pool, group in world.groups.items()}


def _rooms(world: World, memory: Memory) -> dict[str, Resources]:
    rooms = dict(memory.rooms)
    for pool in world.supplies:
        room = learnt(node for node in world.nodes if node.pool == pool)
        if room is not None:
            rooms[pool] = room
    return rooms
