"""The fast packing: puts kinds of pods into existing rooms, then onto new hosts, a whole pattern at a time.

A host is filled once, and the filling is repeated while there are pods for it. So the work grows with kinds and pools, and hardly
with pods. The worth of a pod, used for choosing, is its share of the cheapest host that takes it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from controllers.planner.tables import Load, Room, Tables, Vector

CHUNKS = 4
"""A balanced filling takes at most one part in so many of what still fits before it checks again what is scarce."""


@dataclass
class PackingState:
    """What a packing has used so far. Rooms are immutable, so copying the lists copies everything."""

    rooms: list[Room]
    offers_left: list[int]
    pool_left: list[int]

    @classmethod
    def of(cls, tables: Tables) -> PackingState:
        return cls(list(tables.rooms), [offer.left for offer in tables.offers], list(tables.pool_left))

    def copy(self) -> PackingState:
        return PackingState(list(self.rooms), list(self.offers_left), list(self.pool_left))

    def take(self, other: PackingState) -> None:
        self.rooms, self.offers_left, self.pool_left = other.rooms, other.offers_left, other.pool_left


def joined(first: Load, second: Load) -> Load:
    amounts = dict(first)
    for kind, count in second:
        amounts[kind] = amounts.get(kind, 0) + count
    return tuple(sorted(amounts.items()))


class Packer:
    """Packs by the worth of kinds, in millionths of a dollar an hour: its own estimate, or that of a linear program."""

    def __init__(self, tables: Tables, worth: list[int] | None = None) -> None:
        self.tables = tables
        self.worth = worth or own_worth(tables)
        # If nothing else is left, a pod is placed against all its preferences rather than nowhere.
        self._dear = [own + max(soft, default=0) + 1 for own, soft in zip(self.worth, tables.soft, strict=True)]
        self._orders: dict[int, list[int]] = {}
        self._dear_orders: dict[int, list[int]] = {}
        self._now, self._now_orders = self.worth, self._orders
        self.recording = True
        """If False, packed pods take room but are not recorded on a host."""

    def pack(self, state: PackingState, demand: list[int], grounds: Collection[int] | None = None) -> None:
        """Place what fits, in existing rooms first. `demand` keeps what doesn't fit. grounds: use only these."""
        for worth, orders in ((self.worth, self._orders), (self._dear, self._dear_orders)):
            self._now, self._now_orders = worth, orders
            if any(demand):
                self._into_rooms(state, demand, grounds)
            if any(demand):
                self._onto_new(state, demand, grounds)

    def _into_rooms(self, state: PackingState, demand: list[int], grounds: Collection[int] | None) -> None:
        kinds = [kind for kind, count in enumerate(demand) if count]
        others: list[Room] = []
        rooms: list[Room] = []
        for room in state.rooms:
            usable = (grounds is None or room.ground in grounds) and self._takes_any(room, kinds)
            (rooms if usable else others).append(room)
        for room in sorted(rooms, key=self._rank):
            others += self._fill_all(room, demand)
        state.rooms = others

    def _takes_any(self, room: Room, kinds: list[int]) -> bool:
        may, steps, free = self.tables.may, self.tables.steps, room.free
        return any(may[kind][room.ground] and all(free[at] >= n for at, n in steps[kind]) for kind in kinds)

    def _rank(self, room: Room) -> tuple[bool, int, Vector, tuple[str, ...]]:
        """Sort key: cheap pools first, to keep dear ones for pods that need them; then fullest first, so that others stay empty."""
        return (room.offer >= 0, self.tables.grounds[room.ground].pool.price, room.free, room.hosts[:1])

    def _fill_all(self, room: Room, demand: list[int]) -> list[Room]:
        """Fill hosts of the room, at once as many as get the same load."""
        done: list[Room] = []
        while room.count:
            load, free = self.fill(room.ground, room.free, demand)
            if not load:
                return [*done, room]
            times = min(room.count, *(demand[kind] // count for kind, count in load))
            for kind, count in load:
                demand[kind] -= count * times
            whole = joined(room.load, load) if self.recording else room.load
            done.append(replace(room, free=free, hosts=room.hosts[:times], count=times, load=whole))
            room = replace(room, hosts=room.hosts[times:], count=room.count - times)
        return done

    def fill(self, ground: int, free: Vector, demand: list[int]) -> tuple[Load, Vector]:
        """Return (best load found for one host, what it leaves free)."""
        order = [kind for kind in self._order(ground) if demand[kind]]
        if not order:
            return (), free
        if len(order) == 1:
            return self._in_order(order, free, demand)
        loads = (self._in_order(order, free, demand), self._balanced(order, ground, free, demand))
        return max(loads, key=lambda each: self.value(ground, each[0]))

    def value(self, ground: int, load: Load) -> int:
        soft = self.tables.soft
        return sum(count * (self._now[kind] - soft[kind][ground]) for kind, count in load)

    def _order(self, ground: int) -> list[int]:
        """Kinds worth placing there, by worth for the room that they take of an empty host; large ones before small."""
        if ground not in self._now_orders:
            tables, order = self.tables, []
            whole = [tables.grounds[ground].pool.room[name] for name in tables.dims]
            for kind, steps in enumerate(tables.steps):
                gain = self._now[kind] - tables.soft[kind][ground]
                if tables.may[kind][ground] and gain > 0:
                    part = max(amount / (whole[at] or 1) for at, amount in steps)
                    order.append((-gain / part, -part, kind))
            self._now_orders[ground] = [kind for *_, kind in sorted(order)]
        return self._now_orders[ground]

    def _in_order(self, order: list[int], free: Vector, demand: list[int]) -> tuple[Load, Vector]:
        left, load = list(free), []
        for kind in order:
            count = demand[kind]
            for at, amount in self.tables.steps[kind]:
                if (fits := left[at] // amount) < count:
                    count = fits
            if count:
                load.append((kind, count))
                for at, amount in self.tables.steps[kind]:
                    left[at] -= amount * count
        return tuple(sorted(load)), tuple(left)

    def _balanced(self, order: list[int], ground: int, free: Vector, demand: list[int]) -> tuple[Load, Vector]:
        """Fill a host greedily by the kind with the most worth for its share of what is left."""
        left, amounts = list(free), dict.fromkeys(order, 0)
        steps, worth, soft = self.tables.steps, self._now, self.tables.soft
        gain = {kind: worth[kind] - soft[kind][ground] for kind in order}
        alive = list(order)
        while alive:
            best, chosen, most = -1.0, -1, 0
            still = []
            for kind in alive:
                count, share = demand[kind] - amounts[kind], 0.0
                for at, amount in steps[kind]:
                    count = min(count, left[at] // amount)
                    if count <= 0:
                        break
                    share += amount / left[at]
                if count > 0:
                    still.append(kind)
                    if gain[kind] / share > best:
                        best, chosen, most = gain[kind] / share, kind, count
            alive = still
            if chosen >= 0:
                count = -(-most // CHUNKS)
                amounts[chosen] += count
                for at, amount in steps[chosen]:
                    left[at] -= amount * count
        return tuple(sorted((kind, count) for kind, count in amounts.items() if count)), tuple(left)

    def _onto_new(self, state: PackingState, demand: list[int], grounds: Collection[int] | None) -> None:
        tables = self.tables
        fillings: dict[int, tuple[Load, Vector, float]] = {}
        while any(demand):
            best, chosen = 0.0, -1
            for number, offer in enumerate(tables.offers):
                if min(state.offers_left[number], state.pool_left[offer.pool]) < 1:
                    continue
                if grounds is not None and offer.ground not in grounds:
                    continue
                filling = fillings.get(number)
                if filling is None or any(demand[kind] < count for kind, count in filling[0]):
                    load, free = self.fill(offer.ground, offer.room, demand)
                    filling = fillings[number] = (load, free, self.value(offer.ground, load) / max(offer.price, 1))
                if filling[0] and filling[2] > best:
                    best, chosen = filling[2], number
            if chosen < 0:
                return
            load, free, _ = fillings[chosen]
            self._add(state, chosen, load, free, demand)

    def _add(self, state: PackingState, number: int, load: Load, free: Vector, demand: list[int]) -> None:
        offer = self.tables.offers[number]
        times = min(state.offers_left[number], state.pool_left[offer.pool], *(demand[kind] // n for kind, n in load))
        for kind, count in load:
            demand[kind] -= count * times
        state.offers_left[number] -= times
        state.pool_left[offer.pool] -= times
        if self.recording:
            state.rooms.append(Room(offer.ground, free, (), times, load, number))


def own_worth(tables: Tables) -> list[int]:
    """Return the worth of each kind: its share of the cheapest host that takes it, soft costs included; at least 1."""
    worth = []
    for kind, steps in enumerate(tables.steps):
        costs = [
            round(max(offer.price, 1) * max(amount / offer.room[at] for at, amount in steps))
            + tables.soft[kind][offer.ground]
            for offer in tables.offers
            if tables.may[kind][offer.ground]
        ]
        worth.append(max(1, min(costs, default=0)))
    return worth


def downsized(tables: Tables, state: PackingState) -> None:
    """Move the load of each new host to the cheapest new host that takes it, because the last ones are seldom full.

    Hosts of pods that must be together are not changed.
    """
    rooms, state.rooms = state.rooms, []
    for room in rooms:
        movable = room.offer >= 0 and not any(tables.kinds[kind].within for kind, _ in room.load)
        while room.count and movable and (number := _cheaper(tables, state, room)) >= 0:
            new = tables.offers[number]
            times = min(room.count, state.offers_left[number], state.pool_left[new.pool])
            for at, by in ((room.offer, times), (number, -times)):
                state.offers_left[at] += by
                state.pool_left[tables.offers[at].pool] += by
            free = left_of(tables, new.room, room.load)
            state.rooms.append(Room(new.ground, free, (), times, room.load, number))
            room = replace(room, count=room.count - times)
        if room.count:
            state.rooms.append(room)


def _cheaper(tables: Tables, state: PackingState, room: Room) -> int:
    """Return the number of the cheapest offer that takes the room's load, -1 if none is cheaper."""
    best, chosen = _cost(tables, room.offer, room.load), -1
    for number, offer in enumerate(tables.offers):
        if min(state.offers_left[number], state.pool_left[offer.pool]) < 1:
            continue
        if all(tables.may[kind][offer.ground] for kind, _ in room.load):
            cost = _cost(tables, number, room.load)
            if cost < best and min(left_of(tables, offer.room, room.load)) >= 0:
                best, chosen = cost, number
    return chosen


def _cost(tables: Tables, number: int, load: Load) -> int:
    offer = tables.offers[number]
    return offer.price + sum(count * tables.soft[kind][offer.ground] for kind, count in load)


def left_of(tables: Tables, room: Vector, load: Load) -> Vector:
    left = list(room)
    for kind, count in load:
        for at, amount in tables.steps[kind]:
            left[at] -= amount * count
    return tuple(left)


def cost(tables: Tables, state: PackingState) -> int:
    """Return the cost of a packing, in millionths of a dollar an hour: new hosts plus the worth of unmet preferences."""
    hosts = sum(tables.offers[room.offer].price * room.count for room in state.rooms if room.offer >= 0)
    wishes = sum(
        count * tables.soft[kind][room.ground] * room.count for room in state.rooms for kind, count in room.load
    )
    return hosts + wishes
