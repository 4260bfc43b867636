"""The problem without what can't be summed up: gangs may lie anywhere, and hosts of a pool are all the same.

Everything that a plan may do, it may do here too, so what is proved to be the least here is a bound for plans.
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduling.planner.certificate import Bin, Relaxed
from scheduling.planner.packing import State
from scheduling.planner.tables import Room, Tables, Vector

MOST_ROOMS = 48
"""Kinds of hosts that are there: more than so many are taken by grounds, each as the roomiest of its ground."""


@dataclass(frozen=True)
class Merged:
    """kind_of[kind]: the row that its pods are counted in. The first bins are `rooms`; offers[bin]: those that it stands for."""

    problem: Relaxed
    kind_of: list[int]
    rooms: list[Room]
    offers: list[tuple[int, ...]]


def merged_kinds(tables: Tables) -> list[int]:
    """Kinds differ by their gang alone when its hosts must lie together; here they needn't."""
    rows: dict[object, int] = {}
    return [rows.setdefault((kind.shape, kind.gang_size), len(rows)) for kind in tables.kinds]


def relaxed(tables: Tables, state: State, placed: list[int]) -> Merged:
    """The problem of placing so many pods of each kind, from the state's rooms and offers."""
    kind_of = merged_kinds(tables)
    first = {row: kind for kind, row in reversed(list(enumerate(kind_of)))}
    rows = [first[row] for row in range(len(first))]
    counts = [0] * len(rows)
    for kind, count in enumerate(placed):
        counts[kind_of[kind]] += count
    rooms = _rooms(state)
    bins = [Bin(room.ground, room.free, 0, room.count, -1) for room in rooms]
    offers: list[tuple[int, ...]] = [()] * len(bins)
    alike: dict[tuple[object, ...], list[int]] = {}
    for number, offer in enumerate(tables.offers):
        if min(state.offers_left[number], state.pool_left[offer.pool]) > 0:
            seen = tuple((tables.may[kind][offer.ground], tables.soft[kind][offer.ground]) for kind in rows)
            alike.setdefault((offer.pool, seen), []).append(number)
    for numbers in alike.values():
        offer = tables.offers[numbers[0]]
        count = min(sum(state.offers_left[number] for number in numbers), state.pool_left[offer.pool])
        bins.append(Bin(offer.ground, offer.room, offer.price, count, offer.pool))
        offers.append(tuple(numbers))
    problem = Relaxed(
        [tables.sizes[kind] for kind in rows],
        counts,
        bins,
        list(state.pool_left),
        [[tables.may[kind][each.ground] for each in bins] for kind in rows],
        [[tables.soft[kind][each.ground] for each in bins] for kind in rows],
    )
    return Merged(problem, kind_of, rooms, offers)


def few(state: State) -> bool:
    """Whether each kind of host that is there has a bin of its own."""
    return sum(1 for room in state.rooms if any(room.free)) <= MOST_ROOMS


def _rooms(state: State) -> list[Room]:
    rooms = [room for room in state.rooms if any(room.free)]
    if few(state):
        return rooms
    roomiest: dict[int, tuple[Vector, int]] = {}
    for room in rooms:
        free, count = roomiest.get(room.ground, (room.free, 0))
        roomiest[room.ground] = (tuple(map(max, free, room.free)), count + room.count)
    return [Room(ground, free, (), count) for ground, (free, count) in roomiest.items()]
