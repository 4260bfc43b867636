"""A relaxed problem, without what can't be expressed as sums: gangs may be placed anywhere, and all hosts of a pool are equal.

Every plan is also possible here, so the proved minimum is a bound for plans.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from controllers.planner.certificate import Bin, Relaxed
from controllers.planner.packing import PackingState
from controllers.planner.tables import Room, Tables

MOST_ROOMS = 64
"""If there are more different existing hosts than this, similar ones are merged and count as the roomiest of them."""


@dataclass(frozen=True)
class Merged:
    """A relaxed problem, and how it maps to the tables. The first bins are `rooms`.

    kind_of[kind]: the row that counts its pods. offers[bin]: the offers that it represents.
    """

    problem: Relaxed
    kind_of: list[int]
    rooms: list[Room]
    offers: list[tuple[int, ...]]


def merged_kinds(tables: Tables) -> list[int]:
    """Return the row of each kind. Kinds that differ only by a gang whose hosts must be together share a row: here they needn't be."""
    rows: dict[object, int] = {}
    return [rows.setdefault((kind.shape, kind.gang_size), len(rows)) for kind in tables.kinds]


def relaxed(tables: Tables, state: PackingState, placed: list[int]) -> Merged:
    """Return the problem of placing so many pods of each kind in the state's rooms and offers."""
    kind_of = merged_kinds(tables)
    first = {row: kind for kind, row in reversed(list(enumerate(kind_of)))}
    rows = [first[row] for row in range(len(first))]
    counts = [0] * len(rows)
    for kind, count in enumerate(placed):
        counts[kind_of[kind]] += count
    rooms = _rooms(tables, state, placed)
    bins = [Bin(room.ground, room.free, 0, room.count, -1) for room in rooms]
    offers: list[tuple[int, ...]] = [()] * len(bins)
    alike: dict[tuple[object, ...], list[int]] = {}
    for number, offer in enumerate(tables.offers):
        if min(state.offers_left[number], state.pool_left[offer.pool]) > 0:
            properties = tuple((tables.may[kind][offer.ground], tables.soft[kind][offer.ground]) for kind in rows)
            alike.setdefault((offer.pool, properties), []).append(number)
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


def _rooms(tables: Tables, state: PackingState, counts: list[int]) -> list[Room]:
    """Return the rooms that a pod fits into. If there are many, merge similar ones, each with the most that any of them has."""
    kinds = [kind for kind, count in enumerate(counts) if count]
    rooms = [
        room
        for room in state.rooms
        if any(
            tables.may[kind][room.ground] and all(room.free[at] >= amount for at, amount in tables.steps[kind])
            for kind in kinds
        )
    ]
    if len(rooms) <= MOST_ROOMS:
        return rooms
    rooms.sort(key=lambda room: (room.ground, room.free[::-1], room.hosts))  # GPUs are near the end, and matter most
    size = -(-len(rooms) // MOST_ROOMS)
    grouped = []
    for _, alike in groupby(rooms, key=lambda room: room.ground):
        several = list(alike)
        grouped += [_roomiest(several[at : at + size]) for at in range(0, len(several), size)]
    return grouped


def _roomiest(rooms: list[Room]) -> Room:
    free = tuple(max(amounts) for amounts in zip(*(room.free for room in rooms), strict=True))
    hosts = tuple(host for room in rooms for host in room.hosts)
    return Room(rooms[0].ground, free, hosts, sum(room.count for room in rooms))
