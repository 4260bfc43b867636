"""As near to the cheapest plan as the time allows: the loads that the bound thought of, in whole numbers of hosts.

Of the heuristic's plan, the linear program's rounded down and filled up, and the whole-number program's, the cheapest
is taken; so it is never worse than the heuristic's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from controllers.planner.admission import Admission
from controllers.planner.bound import bounded
from controllers.planner.certificate import Certificate
from controllers.planner.packing import State, cost, downsized
from controllers.planner.plan import Budget
from controllers.planner.relaxed import MOST_ROOMS, relaxed
from controllers.planner.rounding import Rounding, loads_of
from controllers.planner.tables import Room, Tables

GAP = 2e-4
"""Of the cost: as near to the bound as a plan need come."""
BOUND_PART = 0.6
"""Of the time: at most so much of it goes into the bound."""


@dataclass(frozen=True)
class Improved:
    """exact: within `GAP` of the bound. cut_short: the time was over before that."""

    admission: Admission
    bound: int
    certificate: Certificate
    exact: bool
    cut_short: bool


def improve(tables: Tables, state: State, admission: Admission, budget: Budget) -> Improved:
    """A plan for the same pods. state: what is there, without the room of those that are settled already."""
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


def _trials(rounding: Rounding, known: State, left_s: Callable[[], float]) -> Iterator[State]:
    """Plans for the same pods, each from more work than the one before."""
    for made in (rounding.guided(), rounding.rounded()):
        if made:
            known = made if cost(rounding.tables, made) < cost(rounding.tables, known) else known
            yield made
    if made := rounding.whole(known, left_s):
        yield made


def _base(tables: Tables, admission: Admission) -> tuple[State, list[int]]:
    """What is left to decide once those have their hosts that must lie together, and how many pods of each kind.

    Where too many of these hosts and of those that are there differ, what the heuristic put on them stays, too.
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


def _named(tables: Tables, state: State) -> State:
    """The state with names for the hosts to be added whose pods must lie together, for they are there from now on."""
    rooms = [
        replace(room, hosts=tuple(f"{number}/{at}" for at in range(room.count)))
        if room.offer >= 0 and any(tables.kinds[kind].within for kind, _ in room.load)
        else room
        for number, room in enumerate(state.rooms)
    ]
    return State(rooms, state.offers_left, state.pool_left)


def _freed(tables: Tables, room: Room) -> tuple[int, ...]:
    """What is free of a room when only those stay on it that must."""
    free = list(room.free)
    for kind, count in room.load:
        if not tables.kinds[kind].within:
            for at, amount in tables.steps[kind]:
                free[at] += amount * count
    return tuple(free)
