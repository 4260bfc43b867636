"""Where pods can go: pools that can grow, existing hosts, and a snapshot of both with the pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from controllers.planner.resources import Resources
from controllers.planner.wishes import Gang, Pod

Labels = tuple[tuple[str, str], ...]
"""Sorted, so that equal labels are equal."""


def labels(values: Mapping[str, str]) -> Labels:
    return tuple(sorted(values.items()))


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint. effect: NoSchedule or NoExecute. PreferNoSchedule keeps no pod away and is left out."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


@dataclass(frozen=True, slots=True)
class Place:
    """A topology domain of a pool's hosts: the labels that hosts have there, and their largest number."""

    name: str
    labels: Labels
    most: int


@dataclass(frozen=True)
class PoolSupply:
    """Hosts of one kind.

    room: what pods may take of an empty host, after its daemons.
    price: millionths of a dollar an hour. most: largest number of hosts, existing ones included.
    interruptions: average interruptions of a spot host an hour. boot_s: from ordered to Ready.
    places: domains that its hosts can be in; empty: the pool has no domains.
    """

    name: str
    room: Resources
    price: int
    most: int
    labels: Labels = ()
    taints: tuple[Taint, ...] = ()
    spot: bool = False
    interruptions: float = 0.0
    boot_s: int = 0
    places: tuple[Place, ...] = ()

    def __post_init__(self) -> None:
        if self.price < 0 or self.most < 0 or self.interruptions < 0:
            raise ValueError(f"pool {self.name}: price, most and interruptions must not be negative")
        names = [place.name for place in self.places]
        if len(set(names)) != len(names):
            raise ValueError(f"pool {self.name}: two places have the same name")

    @cached_property
    def grounds(self) -> tuple[Place, ...]:
        """Return its places; for a pool without places, one for the whole pool."""
        return self.places or (Place("", (), self.most),)


@dataclass(frozen=True, slots=True)
class HostSupply:
    """An existing host, or one that was ordered.

    free: what pods may still take of it. apart: groups that already have a pod on it.
    expects: names of pods that an earlier plan put on it. open: whether pods may be placed on it.
    """

    name: str
    pool: str
    free: Resources
    place: str = ""
    labels: Labels = ()
    taints: tuple[Taint, ...] = ()
    apart: frozenset[str] = frozenset()
    expects: tuple[str, ...] = ()
    open: bool = True


@dataclass(frozen=True)
class Snapshot:
    """The complete input of a plan. taken_s: Unix time. missing: sources that didn't answer when it was taken.

    Errors: raises ValueError if it contradicts itself.
    """

    taken_s: int
    pools: tuple[PoolSupply, ...]
    hosts: tuple[HostSupply, ...] = ()
    pods: tuple[Pod, ...] = ()
    gangs: tuple[Gang, ...] = ()
    missing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        problems = [
            *_twice("pool", [pool.name for pool in self.pools]),
            *_twice("host", [host.name for host in self.hosts]),
            *_twice("pod", [pod.name for pod in self.pods]),
            *_twice("gang", [gang.name for gang in self.gangs]),
        ]
        pools = {pool.name: pool for pool in self.pools}
        for host in self.hosts:
            if host.pool not in pools:
                problems.append(f"host {host.name} belongs to pool {host.pool}, which does not exist")
            elif host.place not in {place.name for place in pools[host.pool].grounds}:
                problems.append(f"host {host.name} is at place {host.place!r}, which pool {host.pool} doesn't have")
        gangs = {gang.name for gang in self.gangs}
        strays = sorted({pod.gang for pod in self.pods if pod.gang and pod.gang not in gangs})
        problems += [f"pods belong to gang {name}, which does not exist" for name in strays]
        if problems:
            raise ValueError("\n".join(problems))


def _twice(what: str, names: list[str]) -> list[str]:
    if len(set(names)) == len(names):
        return []
    return [
        f"{what} {name} is listed {names.count(name)} times" for name in sorted(set(names)) if names.count(name) > 1
    ]
