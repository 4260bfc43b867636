"""Decides which waiting pods are placed, and for whom room is held: all if there is room, else in the queue's order."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from controllers.planner.gangs import demand_of, empty_world, hold, place_whole
from controllers.planner.packing import Packer, PackingState, cost, downsized
from controllers.planner.queue import Unit, holds, units
from controllers.planner.tables import Tables
from controllers.planner.wishes import Pod


@dataclass(frozen=True)
class Left:
    """Pods of a unit that find no room now.

    ever: whether they would find room if all pools were empty. behind: the unit for which room is held that they could have used.
    """

    unit: Unit
    counts: dict[int, int]
    ever: bool
    behind: str = ""


@dataclass
class Admission:
    """The packing of the placed pods, and the pods that are left. demand[kind]: number placed, without those in `fixed`.

    fixed: the same for pods whose hosts must be together; their placement must not change.
    """

    state: PackingState
    demand: list[int]
    fixed: list[int]
    left: list[Left] = field(default_factory=list)


def admit(tables: Tables, state: PackingState, waiting: list[list[Pod]]) -> Admission:
    """Place the waiting pods in a copy of the state. waiting: by kind."""
    packer, queue = Packer(tables), units(tables, waiting)
    all_of_them = _together(packer, state.copy(), queue)
    if all_of_them:
        return all_of_them
    admission = _one_by_one(packer, state.copy(), queue)
    left = {id(each.unit): each.counts for each in admission.left}
    placed = [_without(unit, left.get(id(unit), {})) for unit in queue]
    better = _together(packer, state.copy(), [unit for unit in placed if unit.size])
    if better and cost(tables, better.state) < cost(tables, admission.state):
        better.left = admission.left
        return better
    return admission


def _without(unit: Unit, left: dict[int, int]) -> Unit:
    """Return the part of a unit that was placed."""
    return replace(unit, counts={kind: count - left.get(kind, 0) for kind, count in unit.counts.items()})


def _together(packer: Packer, state: PackingState, queue: list[Unit]) -> Admission | None:
    """Place the whole queue, units that must be together first and the largest of them first; None if not everything fits."""
    tables = packer.tables
    demand, fixed = [0] * len(tables.kinds), [0] * len(tables.kinds)
    close = [unit for unit in queue if unit.gang and tables.gangs[unit.gang].within]
    for unit in sorted(close, key=lambda unit: (-unit.size, unit.gang)):
        if not place_whole(packer, state, unit):
            return None
        for kind, count in unit.counts.items():
            fixed[kind] += count
    for unit in queue:
        if not (unit.gang and tables.gangs[unit.gang].within):
            for kind, count in unit.counts.items():
                demand[kind] += count
    left = list(demand)
    packer.pack(state, left)
    if any(left):
        return None
    downsized(tables, state)
    return Admission(state, demand, fixed)


def _one_by_one(packer: Packer, state: PackingState, queue: list[Unit]) -> Admission:
    tables = packer.tables
    admission = Admission(state, [0] * len(tables.kinds), [0] * len(tables.kinds))
    taken: dict[int, str] = {}
    for unit in queue:
        left = _place(packer, state, unit)
        placed = admission.fixed if unit.gang and tables.gangs[unit.gang].within else admission.demand
        for kind, count in unit.counts.items():
            placed[kind] += count - left.get(kind, 0)
        if left:
            ever = _ever(packer, unit)
            admission.left.append(Left(unit, left, ever, _held_for(tables, unit, taken)))
            if ever and holds(unit, tables):
                rest = replace(unit, counts=left)
                who = unit.gang or unit.pods[next(iter(unit.counts))][-1].name
                taken |= dict.fromkeys(hold(packer, state, rest, frozenset(taken)), who)
    downsized(tables, state)
    return admission


def _held_for(tables: Tables, unit: Unit, taken: dict[int, str]) -> str:
    """Return for whom room is held in a pool that the unit could have used, "" for nobody."""
    able = [tables.pool_of[ground] for kind in unit.counts for ground, may in enumerate(tables.may[kind]) if may]
    return next((taken[pool] for pool in able if pool in taken), "")


def _place(packer: Packer, state: PackingState, unit: Unit) -> dict[int, int]:
    """Place a gang as a whole, or as many other pods as fit. Return the counts that are left."""
    if unit.gang:
        return {} if place_whole(packer, state, unit) else dict(unit.counts)
    left = demand_of(packer.tables, unit)
    packer.pack(state, left)
    return {kind: left[kind] for kind in unit.counts if left[kind]}


def _ever(packer: Packer, unit: Unit) -> bool:
    """Whether the unit would find room if nothing else ran."""
    if unit.gang:
        return place_whole(packer, empty_world(packer.tables), unit)
    tables = packer.tables
    there = {room.ground for room in tables.rooms}
    there |= {o.ground for o in tables.offers if min(o.place.most, tables.snapshot.pools[o.pool].most) > 0}
    return any(tables.may[kind][ground] for kind in unit.counts for ground in there)
