"""Where pods can go: pools that hosts can be added to, the hosts that are there, and all of it at one time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from controllers.planner.resources import Resources
from controllers.planner.wishes import Gang, Pod

Labels = tuple[tuple[str, str], ...]
"""Sorted, so that equal labels are equal."""


def labels(known: Mapping[str, str]) -> Labels:
    return tuple(sorted(known.items()))


@dataclass(frozen=True, slots=True)
class Taint:
    """effect: NoSchedule or NoExecute. PreferNoSchedule keeps nobody away, and is left out."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


@dataclass(frozen=True, slots=True)
class Place:
    """A topology domain that a pool's hosts stand in: the labels that they have there, and the most of them."""

    name: str
    labels: Labels
    most: int


@dataclass(frozen=True)
class Pool:
    """Hosts of one kind.

    room: what pods may take of an empty host, without what its daemons take.
    price: millionths of a dollar an hour. most: hosts of it at most, those there included.
    interruptions: how often an hour a spot host is taken away, on average. boot_s: from ordered to Ready.
    places: where its hosts can stand; none: anywhere, and nobody asks.
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
            raise ValueError(f"pool {self.name}: price, most and interruptions aren't below nothing")
        names = [place.name for place in self.places]
        if len(set(names)) != len(names):
            raise ValueError(f"pool {self.name}: two places of one name")

    @cached_property
    def grounds(self) -> tuple[Place, ...]:
        """Its places, or the one that it is itself."""
        return self.places or (Place("", (), self.most),)


@dataclass(frozen=True, slots=True)
class Host:
    """A host that is there, or ordered and not there yet.

    free: what pods may still take of it. apart: groups that have a pod on it already.
    expects: names of pods that an earlier plan wants on it. open: whether pods may be put on it.
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
    """All that a plan follows from. taken_s: seconds since 1970. missing: what didn't answer when it was taken.

    ValueError when it contradicts itself.
    """

    taken_s: int
    pools: tuple[Pool, ...]
    hosts: tuple[Host, ...] = ()
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
                problems.append(f"host {host.name} is of pool {host.pool}, which isn't there")
            elif host.place not in {place.name for place in pools[host.pool].grounds}:
                problems.append(f"host {host.name} stands at {host.place!r}, which pool {host.pool} doesn't have")
        gangs = {gang.name for gang in self.gangs}
        strays = sorted({pod.gang for pod in self.pods if pod.gang and pod.gang not in gangs})
        problems += [f"pods are of gang {name}, which isn't there" for name in strays]
        if problems:
            raise ValueError("\n".join(problems))


def _twice(what: str, names: list[str]) -> list[str]:
    if len(set(names)) == len(names):
        return []
    return [f"{what} {name} is there {names.count(name)} times" for name in sorted(set(names)) if names.count(name) > 1]
