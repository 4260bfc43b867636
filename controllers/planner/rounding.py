"""Turns the linear program's fractions of hosts into whole hosts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from controllers.planner.bound import Bounded, Columns
from controllers.planner.packing import Packer, PackingState, joined, left_of
from controllers.planner.relaxed import Merged, relaxed
from controllers.planner.tables import Load, Room, Tables

WALL = 5
"""Wall-clock seconds that a processor second may take on a busy machine."""

Counted = tuple[int, Load, int]
"""(bin, load in rows, number of its hosts with this load)."""


def loads_of(tables: Tables, merged: Merged, state: PackingState) -> Iterator[tuple[int, Load]]:
    """Return (bin, load) of the hosts in a state."""
    return ((number, load) for number, load, _ in counted(tables, merged, state))


def counted(tables: Tables, merged: Merged, state: PackingState, *, fixed: bool = True) -> Iterator[Counted]:
    """Yield the loads of a state's hosts, counted by bin.

    fixed: include pods whose hosts must be together; without them, hosts that have no bin are left out.
    """
    by_host = {host: number for number, room in enumerate(merged.rooms) for host in room.hosts}
    by_offer = {offer: number for number, offers in enumerate(merged.offers) for offer in offers}
    for room in state.rooms:
        load: Load = ()
        for kind, count in room.load:
            if fixed or not tables.kinds[kind].within:
                load = joined(load, ((merged.kind_of[kind], count),))
        if load and room.hosts and room.hosts[0] in by_host:
            yield by_host[room.hosts[0]], load, room.count
        elif load and (fixed or not room.hosts):
            yield by_offer[room.offer], load, room.count


class Rounding:
    """Derives plans from the bound's proof. base: what is already decided. demand: pods still to place, by kind."""

    def __init__(self, tables: Tables, base: PackingState, demand: list[int], whole: Merged, proof: Bounded) -> None:
        self.tables, self.base, self.demand = tables, base, demand
        self.rest = relaxed(tables, base, demand)
        self.packer = Packer(tables, [max(1, proof.certificate.prices[row]) for row in whole.kind_of])
        self.columns = Columns(self.rest.problem)
        self.kinds = {self.rest.kind_of[kind]: kind for kind, each in enumerate(tables.kinds) if not each.within}
        self.columns.grow(self._known_loads(whole, proof))

    def _known_loads(self, whole: Merged, proof: Bounded) -> Iterator[tuple[int, Load]]:
        """Yield the proof's loads on the bins that also exist here."""
        by_offer = {offer: number for number, offers in enumerate(self.rest.offers) for offer in offers}
        by_room = {(room.ground, room.free): number for number, room in enumerate(self.rest.rooms)}
        for number, load in proof.columns.loads:
            offers = whole.offers[number]
            if offers:
                same = next((by_offer[offer] for offer in offers if offer in by_offer), None)
            else:
                room = whole.rooms[number]
                same = by_room.get((room.ground, room.free))
            if same is not None:
                yield same, tuple((row, count) for row, count in load if row in self.kinds)

    def guided(self) -> PackingState | None:
        """Return the heuristic's packing by the proof's prices."""
        return self._filled_up(self.base.copy(), list(self.demand))

    def rounded(self) -> PackingState | None:
        """Return the linear program's hosts rounded down, with the rest packed by the heuristic."""
        guided = self.guided()
        if guided is None:
            return None
        self.columns.grow((number, load) for number, load, _ in counted(self.tables, self.rest, guided, fixed=False))
        solved = self.columns.program.solve()
        chosen = [
            (number, load, math.floor(value + 1e-6))
            for (number, load), value in zip(self.columns.loads, solved.values, strict=True)
        ]
        return self._built(chosen)

    def whole(self, start_state: PackingState, left_s: Callable[[], float]) -> PackingState | None:
        """Return the integer program's solution, starting from a known one."""
        hosts = list(counted(self.tables, self.rest, start_state, fixed=False))
        self.columns.grow((number, load) for number, load, _ in hosts)
        numbers = {each: number for number, each in enumerate(self.columns.loads)}
        start = [0.0] * len(numbers)
        for number, load, count in hosts:
            start[numbers[number, load]] += count
        if left_s() <= 0:
            return None
        solved = self.columns.program.whole(start, 5e-5, lambda: left_s() <= 0, WALL * left_s())
        if not solved.values:
            return None
        chosen = [(*each, round(value)) for each, value in zip(self.columns.loads, solved.values, strict=True)]
        return self._built(chosen)

    def _built(self, chosen: list[Counted]) -> PackingState | None:
        """Return the state with the chosen loads on so many hosts. Surplus pods are dropped, and missing ones packed."""
        state, demand = self.base.copy(), list(self.demand)
        rooms = {room.hosts: room for room in self.rest.rooms}
        state.rooms = [room for room in state.rooms if room.hosts not in rooms]
        for number, load, count in sorted(chosen, key=lambda each: (each[0], each[1])):
            own = tuple((self.kinds[row], amount) for row, amount in load)
            for trimmed, times in _trimmed(own, count, demand):
                if number < len(self.rest.rooms):
                    key = self.rest.rooms[number].hosts
                    taken, rooms[key] = _loaded(self.tables, rooms[key], trimmed, times)
                    state.rooms.append(taken)
                else:
                    self._add(state, number, trimmed, times)
        state.rooms += [room for room in rooms.values() if room.count]
        return self._filled_up(state, demand)

    def _add(self, state: PackingState, number: int, load: Load, times: int) -> None:
        for offer_number in self.rest.offers[number]:
            offer = self.tables.offers[offer_number]
            here = min(times, state.offers_left[offer_number], state.pool_left[offer.pool])
            if here > 0:
                free = left_of(self.tables, offer.room, load)
                state.rooms.append(Room(offer.ground, free, (), here, load, offer_number))
                state.offers_left[offer_number] -= here
                state.pool_left[offer.pool] -= here
                times -= here

    def _filled_up(self, state: PackingState, demand: list[int]) -> PackingState | None:
        self.packer.pack(state, demand)
        return None if any(demand) else state


def _trimmed(load: Load, times: int, demand: list[int]) -> Iterator[tuple[Load, int]]:
    """Yield the load so many times, trimmed to the demand, which is reduced accordingly."""
    whole = min([times, *(demand[kind] // count for kind, count in load)])
    if whole:
        for kind, count in load:
            demand[kind] -= count * whole
        yield load, whole
    for _ in range(times - whole):
        rest = tuple((kind, min(count, demand[kind])) for kind, count in load if demand[kind])
        if not rest:
            return
        for kind, count in rest:
            demand[kind] -= count
        yield rest, 1


def _loaded(tables: Tables, room: Room, load: Load, times: int) -> tuple[Room, Room]:
    """Return (so many of the room's hosts with the load, the other hosts)."""
    free = left_of(tables, room.free, load)
    taken = replace(room, free=free, hosts=room.hosts[:times], count=times, load=joined(room.load, load))
    return taken, replace(room, hosts=room.hosts[times:], count=room.count - times)
