"""Comes as near to the cheapest plan as the time allows, using the bound's loads on whole numbers of hosts.

It takes the cheapest of three plans: the heuristic's, the linear program's rounded down and filled up, and the integer program's. So
the result is never worse than the heuristic's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from controllers.planner.admission import Admission
from controllers.planner.bound import bounded
from controllers.planner.certificate import Certificate
from controllers.planner.packing import PackingState, cost, downsized
from controllers.planner.plan import Budget
from controllers.planner.relaxed import MOST_ROOMS, relaxed
from controllers.planner.rounding import Rounding, loads_of
from controllers.planner.tables import Room, Tables

GAP = 2e-4
"""A plan within this share of its cost of the bound is near enough."""
BOUND_PART = 0.6
"""The bound gets at most this share of the time."""


@dataclass(frozen=True)
class Improved:
    """An improved plan. exact: within `GAP` of the bound. cut_short: the time ran out before that."""

    admission: Admission
    bound: int
    certificate: Certificate
    exact: bool
    cut_short: bool


def improve(tables: Tables, state: PackingState, admission: Admission, budget: Budget) -> Improved:
    """Improve a plan for the same pods. state: existing hosts, without the room of pods that are already settled."""
    start = budget.clock()

    def over(part: float = 1.0) -> bool:
        return budget.clock() - start >= budget.seconds * part

    admission = replace(admission, state=_named(tables, admission.state))
    placed = [count + fixed for count, fixed in zip(admission.demand, admission.fixed, strict=True)]
    whole = relaxed(tables, state, placed)
    proof = bounded(whole.problem, loads_of(tables, whole, admission.state), lambda: over(BOUND_PART))
    bound = proof.certificate.bound
    best, least = admission.state, cost(tables, admission.state)
    base, demand = _base(tables, admission)
    rounding = Rounding(tables, base, demand, whole, proof)
    for trial in _trials(rounding, admission.state, lambda: max(0.0, budget.seconds - budget.clock() + start)):
        downsized(tables, trial)
        if (price := cost(tables, trial)) < least:
            best, least = trial, price
        if over() or least - bound <= GAP * bound:
            break
    exact = least - bound <= GAP * bound
    return Improved(replace(admission, state=best), bound, proof.certificate, exact, over() and not exact)


def _trials(rounding: Rounding, best: PackingState, left_s: Callable[[], float]) -> Iterator[PackingState]:
    """Yield plans for the same pods, each from more work than the one before."""
    for trial in (rounding.guided(), rounding.rounded()):
        if trial:
            best = trial if cost(rounding.tables, trial) < cost(rounding.tables, best) else best
            yield trial
    if trial := rounding.whole(best, left_s):
        yield trial


def _base(tables: Tables, admission: Admission) -> tuple[PackingState, list[int]]:
    """Return (state, number of pods of each kind) that are left to decide once pods that must be together have their hosts.

    If too many of these hosts and of the existing ones differ, what the heuristic put on them also stays.
    """
    state, demand = admission.state.copy(), list(admission.demand)
    kept = [room for room in state.rooms if room.offer < 0 or room.hosts]
    state.rooms = []
    for room in admission.state.rooms:
        if room.offer >= 0 and not room.hosts:
            state.offers_left[room.offer] += room.count
            state.pool_left[tables.offers[room.offer].pool] += room.count
        elif len(kept) <= MOST_ROOMS:
            load = tuple((kind, count) for kind, count in room.load if tables.kinds[kind].within)
            state.rooms.append(replace(room, free=_freed(tables, room), load=load))
        else:
            for kind, count in room.load:
                if not tables.kinds[kind].within:
                    demand[kind] -= count * room.count
            state.rooms.append(replace(room, free=(0,) * len(room.free)))
    return state, demand


def _named(tables: Tables, state: PackingState) -> PackingState:
    """Return the state with names for new hosts whose pods must be together: from now on they count as existing."""
    rooms = [
        replace(room, hosts=tuple(f"{number}/{at}" for at in range(room.count)))
        if room.offer >= 0 and any(tables.kinds[kind].within for kind, _ in room.load)
        else room
        for number, room in enumerate(state.rooms)
    ]
    return PackingState(rooms, state.offers_left, state.pool_left)


def _freed(tables: Tables, room: Room) -> tuple[int, ...]:
    """Return what is free in a room if only the pods that must stay do."""
    free = list(room.free)
    for kind, count in room.load:
        if not tables.kinds[kind].within:
            for at, amount in tables.steps[kind]:
                free[at] += amount * count
    return tuple(free)
