"""Pods that an earlier plan wants on a host stay wanted there: what was ordered for them is used for them.

So a plan that was carried out leaves nothing to plan, however long its hosts take to boot.
"""

from __future__ import annotations

from dataclasses import replace

from controllers.planner.packing import State
from controllers.planner.tables import Room, Tables, Vector
from controllers.planner.wishes import Pod


def settle(tables: Tables, state: State) -> dict[str, str]:
    """Take the room of pods that are expected somewhere out of the state; pod -> host.

    A gang whose pods aren't all expected, or not all where they fit and belong, is planned anew as a whole.
    """
    kind_of = {pod.name: (kind, pod) for kind, pods in enumerate(tables.pods) for pod in pods}
    wanted = {pod: host.name for host in tables.snapshot.hosts if host.open for pod in host.expects if pod in kind_of}
    if not wanted:
        return {}
    free = {name: (room.ground, room.free) for room in state.rooms for name in room.hosts}
    settled: dict[str, str] = {}
    units: dict[str, list[tuple[int, Pod]]] = {}
    for name in sorted(wanted):
        kind, pod = kind_of[name]
        units.setdefault(f"gang {pod.gang}" if pod.gang else f"pod {name}", []).append((kind, pod))
    for members in units.values():
        gang = members[0][1].gang
        if gang is None or _is_whole(tables, gang, members, wanted, free):
            settled |= _settle(tables, members, wanted, free)
    state.rooms = _regrouped(state.rooms, free)
    return settled


def _is_whole(
    tables: Tables,
    name: str,
    members: list[tuple[int, Pod]],
    wanted: dict[str, str],
    free: dict[str, tuple[int, Vector]],
) -> bool:
    gang = tables.gangs[name]
    if len(members) != gang.members:
        return False
    if gang.within is None:
        return True
    values = {dict(tables.grounds[free[wanted[pod.name]][0]].labels).get(gang.within) for _, pod in members}
    return len(values) == 1 and None not in values


def _settle(
    tables: Tables, members: list[tuple[int, Pod]], wanted: dict[str, str], free: dict[str, tuple[int, Vector]]
) -> dict[str, str]:
    """All of the members, or none when one of them doesn't fit any more."""
    before = {wanted[pod.name]: free[wanted[pod.name]] for _, pod in members}
    for kind, pod in members:
        host = wanted[pod.name]
        ground, left = free[host]
        after = tuple(there - amount for there, amount in zip(left, tables.sizes[kind], strict=True))
        if min(after) < 0 or not tables.may[kind][ground]:
            free.update(before)
            return {}
        free[host] = (ground, after)
    return {pod.name: wanted[pod.name] for _, pod in members}


def _regrouped(rooms: list[Room], free: dict[str, tuple[int, Vector]]) -> list[Room]:
    """The rooms with what is free now, those apart that are no longer alike."""
    regrouped: list[Room] = []
    for room in rooms:
        alike: dict[Vector, list[str]] = {}
        for name in room.hosts:
            alike.setdefault(free[name][1], []).append(name)
        regrouped += [replace(room, free=left, hosts=tuple(names), count=len(names)) for left, names in alike.items()]
    return regrouped
