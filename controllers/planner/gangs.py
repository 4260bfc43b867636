"""Places a unit as a whole: a gang all at once, and within one topology domain if it requests that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from controllers.planner.feasibility import how_many
from controllers.planner.packing import Packer, PackingState, cost
from controllers.planner.queue import Unit
from controllers.planner.tables import Room, Tables

Grounds = frozenset[int]


def place_whole(packer: Packer, state: PackingState, unit: Unit) -> bool:
    """Place all pods of the unit where they cost least, or none."""
    best: tuple[int, PackingState] | None = None
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


def most_of(packer: Packer, state: PackingState, unit: Unit) -> tuple[int, str, Grounds | None, PackingState]:
    """Return (largest number of its pods that fit now, domain, its grounds, the state with them placed)."""
    trials = []
    for name, grounds in domains(packer.tables, unit):
        trial, left = state.copy(), demand_of(packer.tables, unit)
        packer.pack(trial, left, grounds)
        trials.append((unit.size - sum(left), name, grounds, trial))
    return max(trials, key=lambda each: each[0])


def domains(tables: Tables, unit: Unit) -> Iterator[tuple[str, Grounds | None]]:
    """Yield (name, grounds) of domains that the unit may use; ("", None) if it does not ask for a domain."""
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


def empty_world(tables: Tables) -> PackingState:
    """Return a state in which nothing runs and every pool can still add all its hosts."""
    return PackingState(
        [], [offer.place.most for offer in tables.offers], [pool.most for pool in tables.snapshot.pools]
    )


def hold(packer: Packer, state: PackingState, unit: Unit, taken: frozenset[int]) -> frozenset[int]:
    """Reserve room for the unit in the state, so that later units don't get it. Return the pools concerned.

    What fits now is held where it fits. For the rest, whole hosts are held, those with the most free room first, because they will be
    empty first. taken: pools in which room is already held for a unit that has waited longer.
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
    """Return ground -> how many of its largest pods an empty host takes, for grounds that any of its pods may use."""
    return {
        ground: min(how_many(tables.kinds[kind].shape, tables.grounds[ground].pool) for kind in able)
        for ground in range(len(tables.grounds))
        if (grounds is None or ground in grounds) and (able := [k for k in unit.counts if tables.may[k][ground]])
    }


def _hold_whole(tables: Tables, state: PackingState, missing: int, usable: dict[int, int]) -> None:
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
