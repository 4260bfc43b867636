"""A ledger counted second by second, and short ways to write facts. Slow on purpose: it shares no code with the product."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date

from controllers.metering.facts import (
    CountersFact,
    EnergyFact,
    Entry,
    Fact,
    HostFact,
    PodFact,
    PowerFact,
    PriceFact,
    Room,
    SpaceFact,
    Subject,
    Use,
    VolumeFact,
)
from controllers.metering.history import History, read
from controllers.metering.journal import Segment

DAY = date(2026, 11, 27)
START = 1_795_737_600
"""The beginning of `DAY` in UTC."""
HOUR = 3600
ROOM = Room(8, 64_000, 512_000)


def host(team: str = "", *, pool: str = "gpu", idle: Use | None = None, down: bool = False, bad: int = 0) -> HostFact:
    return HostFact(pool, idle or (Use.HELD if team else Use.FREE), down, team, ROOM, bad)


def pod(node: str, gpus: int = 8, *, namespace: str = "team-robotics", cpu: int = 1000, memory: int = 1024) -> PodFact:
    return PodFact(namespace, node, Room(gpus, cpu, memory))


def entry(since: int, id: str, fact: Fact | None, subject: Subject | None = None) -> Entry:
    """Return an entry. subject: needed for an end, which has no fact."""
    kinds = {
        HostFact: Subject.HOST,
        PodFact: Subject.POD,
        SpaceFact: Subject.SPACE,
        VolumeFact: Subject.VOLUME,
        PriceFact: Subject.PRICE,
        EnergyFact: Subject.ENERGY,
        PowerFact: Subject.POWER,
        CountersFact: Subject.COUNTERS,
    }
    return Entry(since, subject or kinds[type(fact)], id, fact)


def history(*entries: Entry, start: int = START - HOUR, end: int = START + 26 * HOUR) -> History:
    """Return a history in which nothing was missed from `start` to `end`."""
    before, after = ([each for each in entries if (each.since <= start) is early] for early in (True, False))
    whole = Segment("lab", start, start, 0, True, tuple(before))
    rest = Segment("lab", start, end, start, False, tuple(after))
    return read([whole, rest])


def second_by_second(
    hosts: Mapping[str, Iterable[tuple[int, HostFact | None]]],
    pods: Mapping[str, tuple[int, int, PodFact]],
    spaces: Mapping[str, Iterable[tuple[int, SpaceFact]]],
    span: tuple[int, int],
) -> tuple[Counter[tuple[str, ...]], Counter[str]]:
    """Return (amounts by (hour, team, namespace, user, pool, use, what), capacity by what), looking at every second alone."""
    parts: Counter[tuple[str, ...]] = Counter()
    capacity: Counter[str] = Counter()
    names = ("gpus", "cpu", "memory")
    for second in range(*span):
        hour = str(second // HOUR * HOUR)
        for name, steps in hosts.items():
            now = _at(steps, second)
            if now is None:
                continue
            left = dict(zip(names, now.room, strict=True))
            capacity["seconds"] += 1
            capacity.update(left)
            present = sorted((uid, one) for uid, (start, end, one) in pods.items() if start <= second < end)
            for _, one in present if not now.down else ():
                if one.node != name:
                    continue
                space = _at(spaces.get(one.namespace, ()), second) or SpaceFact()
                team = space.team or (space.teams[0] if len(space.teams) == 1 else "")
                if not team and now.team in space.teams:
                    team = now.team
                for what, need in zip(names, one.need, strict=True):
                    has = min(need, left[what])
                    left[what] -= has
                    parts[hour, team, one.namespace, space.user, now.pool, "used", what] += has
            in_service = now.idle in (Use.FREE, Use.HELD)
            bad = min(now.bad_gpus, left["gpus"]) if in_service else 0
            parts[hour, "", "", "", now.pool, "broken", "gpus"] += bad
            left["gpus"] -= bad
            team = now.team if now.idle is Use.HELD else ""
            for what in names:
                parts[hour, team, "", "", now.pool, now.idle.value, what] += left[what]
    return Counter({key: amount for key, amount in parts.items() if amount}), capacity


def _at(steps: Iterable[tuple[int, Fact | None]], second: int) -> Fact | None:
    """Return the last fact that began at the second or before."""
    now: Fact | None = None
    for since, fact in steps:
        if since <= second:
            now = fact
    return now
