"""Keeps pods on the hosts that an earlier plan chose for them, so that hosts ordered for pods are used for those pods.

A plan that was carried out therefore leaves nothing to plan, however long its hosts take to boot.
"""

from __future__ import annotations

from dataclasses import replace

from controllers.planner.packing import PackingState
from controllers.planner.tables import Room, Tables, Vector
from controllers.planner.wishes import Pod


def settle(tables: Tables, state: PackingState) -> dict[str, str]:
    """Remove the room of expected pods from the state. Return pod -> host.

    A gang is planned again as a whole unless all its pods are expected, and on hosts where they still fit and belong.
    """
    kind_of = {pod.name: (kind, pod) for kind, pods in enumerate(tables.pods) for pod in pods}
    host_of = {pod: host.name for host in tables.snapshot.hosts if host.open for pod in host.expects if pod in kind_of}
    if not host_of:
        return {}
    free = {name: (room.ground, room.free) for room in state.rooms for name in room.hosts}
    settled: dict[str, str] = {}
    units: dict[str, list[tuple[int, Pod]]] = {}
    for name in sorted(host_of):
        kind, pod = kind_of[name]
        units.setdefault(f"gang {pod.gang}" if pod.gang else f"pod {name}", []).append((kind, pod))
    for members in units.values():
        gang = members[0][1].gang
        if gang is None or _is_whole(tables, gang, members, host_of, free):
            settled |= _settle(tables, members, host_of, free)
    state.rooms = _regrouped(state.rooms, free)
    return settled


def _is_whole(
    tables: Tables,
    name: str,
    members: list[tuple[int, Pod]],
    host_of: dict[str, str],
    free: dict[str, tuple[int, Vector]],
) -> bool:
    gang = tables.gangs[name]
    if len(members) != gang.members:
        return False
    if gang.within is None:
        return True
    values = {dict(tables.grounds[free[host_of[pod.name]][0]].labels).get(gang.within) for _, pod in members}
    return len(values) == 1 and None not in values


def _settle(
    tables: Tables, members: list[tuple[int, Pod]], host_of: dict[str, str], free: dict[str, tuple[int, Vector]]
) -> dict[str, str]:
    """Settle all members, or none if one of them no longer fits."""
    before = {host_of[pod.name]: free[host_of[pod.name]] for _, pod in members}
    for kind, pod in members:
        host = host_of[pod.name]
        ground, left = free[host]
        after = tuple(there - amount for there, amount in zip(left, tables.sizes[kind], strict=True))
        if min(after) < 0 or not tables.may[kind][ground]:
            free.update(before)
            return {}
        free[host] = (ground, after)
    return {pod.name: host_of[pod.name] for _, pod in members}


def _regrouped(rooms: list[Room], free: dict[str, tuple[int, Vector]]) -> list[Room]:
    """Return the rooms with their current free room; hosts that are no longer alike are separated."""
    regrouped: list[Room] = []
    for room in rooms:
        alike: dict[Vector, list[str]] = {}
        for name in room.hosts:
            alike.setdefault(free[name][1], []).append(name)
        regrouped += [replace(room, free=left, hosts=tuple(names), count=len(names)) for left, names in alike.items()]
    return regrouped
