"""Placing a unit as a whole: a gang all at once, and within one topology domain when it asks for that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from controllers.planner.feasibility import how_many
from controllers.planner.packing import Packer, State, cost
from controllers.planner.queue import Unit
from controllers.planner.tables import Room, Tables

Grounds = frozenset[int]


def place_whole(packer: Packer, state: State, unit: Unit) -> bool:
    """Place all of the unit's pods where they cost least, or none."""
    best: tuple[int, State] | None = None
    for _, grounds in domains(packer.tables, unit):
        trial, left = state.copy(), demand_of(packer.tables, unit)
        packer.pack(trial, left, grounds)
        if not any(left):
            price = cost(packer.tables, trial)
            if best is None or price < best[0]:
                best = (price, trial)
    if best:
        state.take(best[1])
    return best is not None


def most_of(packer: Packer, state: State, unit: Unit) -> tuple[int, str, Grounds | None, State]:
    """The most of its pods that fit now, in which domain, and the state with them in it."""
    found = []
    for name, grounds in domains(packer.tables, unit):
        trial, left = state.copy(), demand_of(packer.tables, unit)
        packer.pack(trial, left, grounds)
        found.append((unit.size - sum(left), name, grounds, trial))
    return max(found, key=lambda each: each[0])


def domains(tables: Tables, unit: Unit) -> Iterator[tuple[str, Grounds | None]]:
    """Domains that the unit may lie in, each with its grounds; one without a name and a limit when it doesn't ask."""
    within = tables.gangs[unit.gang].within if unit.gang else None
    if within is None:
        yield "", None
        return
    by_value: dict[str, set[int]] = {}
    for number, ground in enumerate(tables.grounds):
        if value := dict(ground.labels).get(within):
            by_value.setdefault(value, set()).add(number)
    if not by_value:
        yield "", frozenset()
    for value, numbers in sorted(by_value.items()):
        yield value, frozenset(numbers)


def demand_of(tables: Tables, unit: Unit) -> list[int]:
    return [unit.counts.get(kind, 0) for kind in range(len(tables.kinds))]


def empty_world(tables: Tables) -> State:
    """As if nothing ran anywhere and every pool could have all its hosts anew."""
    return State([], [offer.place.most for offer in tables.offers], [pool.most for pool in tables.snapshot.pools])


def hold(packer: Packer, state: State, unit: Unit, taken: frozenset[int]) -> frozenset[int]:
    """Take what the unit waits for out of the state, so that nobody after it gets it; the pools that this was in.

    What fits of it now is held where it fits; for the rest whole hosts, those with the most room first, since they
    will be the first to be empty. taken: pools where room is held already, for one that has waited longer.
    """
    packer.recording = False
    fits, _, grounds, trial = most_of(packer, state, unit)
    packer.recording = True
    usable = _usable(packer.tables, unit, grounds)
    pools = frozenset(packer.tables.pool_of[ground] for ground in usable)
    if pools & taken:
        return frozenset()
    state.take(trial)
    _hold_whole(packer.tables, state, unit.size - fits, usable)
    return pools


def _usable(tables: Tables, unit: Unit, grounds: Grounds | None) -> dict[int, int]:
    """Grounds that any of its pods may stand on, each with how many of the largest an empty host takes."""
    return {
        ground: min(how_many(tables.kinds[kind].shape, tables.grounds[ground].pool) for kind in able)
        for ground in range(len(tables.grounds))
        if (grounds is None or ground in grounds) and (able := [k for k in unit.counts if tables.may[k][ground]])
    }


def _hold_whole(tables: Tables, state: State, missing: int, usable: dict[int, int]) -> None:
    def freeness(room: Room) -> float:
        pool = tables.grounds[room.ground].pool
        whole = [pool.room[name] for name in tables.dims]
        return sum(free / there for free, there in zip(room.free, whole, strict=True) if there)

    rooms = [room for room in state.rooms if room.offer < 0 and room.ground in usable]
    for room in sorted(rooms, key=lambda room: (-freeness(room), room.hosts)):
        if missing <= 0:
            return
        count = min(room.count, -(-missing // usable[room.ground]))
        missing -= count * usable[room.ground]
        state.rooms.remove(room)
        state.rooms.append(replace(room, free=(0,) * len(room.free), hosts=room.hosts[:count], count=count))
        if room.count > count:
            state.rooms.append(replace(room, hosts=room.hosts[count:], count=room.count - count))
