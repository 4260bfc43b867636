"""The object that is kept of a day: what was counted, whether it closes, and what is missing. Always the same bytes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from cluster import shared
from controllers.metering import energy, traffic_day
from controllers.metering.facts import EnergySource, PriceFact, Subject, Use
from controllers.metering.history import History, lives
from controllers.metering.journal import DAY_S, Segment, canonical
from controllers.metering.ledger import CLOSING, FIELDS, HOUR_S, MICRO, Amounts, Key, Ledger, count
from controllers.metering.traffic_day import TrafficKey

PREFIX = "ledger/days"
RUNNING = "ledger/running"
"""Of objects of days that have not ended."""
LOOKS_S = (HOUR_S, HOUR_S + DAY_S)
"""How long after its end a day is counted, and counted again, for what was learnt late."""
AGAIN_S = 2 * DAY_S
"""How long after its last look a day is looked at again by a process that has just started."""
TOLERANCE = 1000
"""A day closes if at most one in so many parts of each capacity is missing."""
_RENAMED = {
    "cost": "cost_micro",
    "energy": "energy_uj",
    "estimated": "estimated_uj",
    "energy_cost": "energy_cost_micro",
}
COLUMNS = (*Key._fields, *(_RENAMED.get(name, name) for name in FIELDS))
"""Of the rows. cost_micro: millionths of a dollar, for the time with a price; energy_cost_micro: for energy with a price, apart.
energy_uj: microjoules, estimated_uj of which are an estimate; unmetered_us: microseconds of hosts without either.
"""
_DIVIDED = {FIELDS.index("cost"): MICRO * HOUR_S, FIELDS.index("energy_cost"): energy.UJ_PER_KWH}
_WORDS = {
    "host_us": "host hours",
    "gpus": "GPU hours",
    "cpu": "CPU hours",
    "memory": "memory hours",
    "storage": "storage hours",
    "energy": "kilowatt-hours",
}
_VERSION = 1


@dataclass(frozen=True)
class Made:
    """From what a day was made. until: the time up to which the journal was used. sha256: of those segments, in order."""

    until: int
    segments: int
    sha256: str


class Digest:
    """Counts and digests segments while they are read. until: segments that end later are left out."""

    def __init__(self, until: int) -> None:
        self._until, self._count, self._sha256 = until, 0, hashlib.sha256()

    def of(self, kept: Iterable[tuple[bytes, Segment]]) -> Iterator[Segment]:
        """Yield the segments that end in time. kept: each with its bytes."""
        for data, segment in kept:
            if segment.end <= self._until:
                self._count += 1
                self._sha256.update(data)
                yield segment

    @property
    def made(self) -> Made:
        return Made(self._until, self._count, self._sha256.hexdigest())


@dataclass(frozen=True)
class Day:
    """A day. document: as it is kept. Errors: reading it raises NewerDataError, and ValueError if it is no day."""

    document: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Return the date, as 2026-11-27."""
        return str(self.document["day"])

    @property
    def complete(self) -> bool:
        return bool(self.document["complete"])

    @property
    def is_running(self) -> bool:
        """Whether the day had not ended when it was counted."""
        return bool(self.document.get("running"))

    @property
    def span(self) -> tuple[int, int]:
        """Return the beginning and the end of what was counted, Unix time: the day, or the part of it that had passed."""
        return int(self.document["start"]), int(self.document["end"])

    @property
    def until(self) -> int:
        """Return up to when the journal was used."""
        return int(self.document["made"]["until"])

    @property
    def missing(self) -> tuple[str, ...]:
        """Return what is missing of hosts' time, a sentence each."""
        return tuple(self.document["missing"])

    @property
    def all_missing(self) -> tuple[str, ...]:
        """Return what is missing of hosts' time, of energy and of traffic, a sentence each."""
        traffic = self.document["traffic"] or {"missing": ()}
        of_energy, of_traffic = self.document["energy"]["missing"], traffic["missing"]
        return (*self.missing, *(f"energy: {why}" for why in of_energy), *(f"traffic: {why}" for why in of_traffic))

    @property
    def notices(self) -> tuple[str, ...]:
        """Return what is worth knowing, a sentence each."""
        return (*self.document["notices"], *(self.document["traffic"] or {"notices": ()})["notices"])

    def traffic(self) -> Iterator[tuple[TrafficKey, int]]:
        """Yield bytes; nothing if no node publishes counters."""
        for *words, amount in (self.document["traffic"] or {"rows": ()})["rows"]:
            yield TrafficKey(*words), amount

    @property
    def without_energy(self) -> dict[str, EnergySource]:
        """Return the pools whose energy nobody knows, and why."""
        return {pool: EnergySource(source) for pool, source in self.document["energy"]["unknown"].items()}

    def rows(self) -> Iterator[tuple[Key, Mapping[str, int]]]:
        """Yield the rows: key, and amounts by the names in `COLUMNS`."""
        size = len(Key._fields)
        for row in self.document["rows"]:
            hour, team, namespace, user, pool, use = row[:size]
            yield Key(hour, team, namespace, user, pool, Use(use)), dict(zip(COLUMNS[size:], row[size:], strict=True))

    def to_bytes(self) -> bytes:
        return canonical(self.document)


def make(cluster: str, day: date, history: History, made: Made, revision: int = 1, *, is_running: bool = False) -> Day:
    """Count a day of a history. revision: 1, or more if a former one was counted before all was known.

    is_running: count from the beginning of the day, or of the journal if that is later, to the end of the journal.
    """
    start, end = bounds(day)
    if is_running:
        start, end = max(start, history.start), min(end, history.end)
    ledger = count(history, start, end)
    parts = ledger.sums()
    rows = [[*key, *_row(amounts)] for key, amounts in sorted(ledger.parts.items())]
    missing = tuple(_missing(ledger, parts))
    document = {
        shared.KEY: _VERSION,
        "cluster": cluster,
        "day": day.isoformat(),
        "revision": revision,
        "running": is_running,
        "start": start,
        "end": end,
        "made": {"until": made.until, "segments": made.segments, "sha256": made.sha256},
        "complete": not missing,
        "missing": list(missing),
        "capacity": _closing(ledger.capacity),
        "counted": _closing(parts),
        "not_counted": _closing(ledger.missing),
        "prices": _prices(history, start, end),
        "without_price": sorted(ledger.unpriced),
        "energy": energy.document(ledger.lacking, history.steps[Subject.ENERGY], start, end),
        "traffic": traffic_day.document(history, start, end, is_running=is_running),
        "notices": list(_notices(ledger)),
        "columns": list(COLUMNS),
        "rows": rows,
    }
    return Day(document)


def read(data: bytes, key: str) -> Day:
    """Read a day. Errors: raises NewerDataError, and ValueError that names the key if it is none."""
    try:
        document = json.loads(data)
        shared.readable(f"the day {key}", document, _VERSION)
        if tuple(document["columns"]) != COLUMNS:
            raise ValueError(f"its columns are {document['columns']}")
        day = Day(document)
        _ = day.name, day.all_missing, day.complete, day.until, day.span, day.without_energy
        return day
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{key} is not a day of a ledger: {error}") from None


def same(one: Day, other: Day) -> bool:
    """Return whether two days say the same, whenever they were made."""

    def plain(day: Day) -> dict[str, Any]:
        return {name: value for name, value in day.document.items() if name not in ("made", "revision")}

    return plain(one) == plain(other)


def bounds(day: date) -> tuple[int, int]:
    """Return the beginning and the end of a UTC day."""
    start = int(datetime.combine(day, time(), UTC).timestamp())
    return start, start + DAY_S


def key_of(day: date, revision: int, suffix: str = "json") -> str:
    """Return the key of a day's object."""
    return f"{PREFIX}/{day.isoformat()}.{revision}.{suffix}"


def running_key(day: date, until: int) -> str:
    """Return the key of the object of a day that has not ended. until: the end of what was counted."""
    return f"{running_folder(day)}/{until:011d}.json"


def running_folder(day: date) -> str:
    """Return the folder of a day's objects from before its end."""
    return f"{RUNNING}/{day.isoformat()}"


def newest(keys: Iterable[str]) -> dict[str, int]:
    """Return date -> its newest revision, from the keys of objects."""
    revisions: dict[str, int] = {}
    for key in keys:
        name, _, suffix = key.rpartition("/")[2].rpartition(".")
        day, _, number = name.rpartition(".")
        if suffix == "json" and number.isdecimal():
            revisions[day] = max(revisions.get(day, 0), int(number))
    return revisions


def due(ended: int, keys: Iterable[str], first: int) -> Iterator[tuple[date, int]]:
    """Yield (day, until) of what can be counted now: a day without an object, or with one that was made before its last look.

    ended: the end of the journal. first: the beginning of the journal. Days are in order.
    """
    revisions = newest(keys)
    day = datetime.fromtimestamp(first, UTC).date()
    while (end := bounds(day)[1]) + LOOKS_S[0] <= ended:
        looks = [end + after for after in LOOKS_S if end + after <= ended]
        if day.isoformat() not in revisions:
            yield day, looks[0]
        if len(looks) > 1 and ended - looks[-1] < AGAIN_S:
            yield day, looks[-1]
        day += timedelta(days=1)


def _row(amounts: list[int]) -> list[int]:
    return [amount // _DIVIDED.get(at, 1) for at, amount in enumerate(amounts)]


def _closing(amounts: Iterable[int]) -> dict[str, int]:
    return {name: amount for name, amount in zip(FIELDS, amounts, strict=True) if name in CLOSING}


def _missing(ledger: Ledger, parts: Amounts) -> Iterator[str]:
    """Yield why the day is incomplete; nothing if it closes."""
    by_name = zip(FIELDS, ledger.capacity, parts, ledger.missing, strict=True)
    lacking = [(name, whole, part, gone) for name, whole, part, gone in by_name if name in CLOSING]
    for name, whole, part, gone in lacking:
        if part + gone != whole:
            yield f"the parts of {name} add up to {part + gone:,}, and the capacity is {whole:,}: a defect of the ledger"
    if any(gone * TOLERANCE > whole for _, whole, _, gone in lacking):
        worst, name = max((gone / whole, name) for name, whole, _, gone in lacking if whole)
        for gap in ledger.gaps:
            yield f"{_clock(gap.start)} to {_clock(gap.end, is_end=True)}: {gap.why}"
        yield f"{worst:.2%} of the {_WORDS[name]} are not counted; at most {1 / TOLERANCE:.1%} may be missing"
    if not any(ledger.capacity):
        yield "no host was known"


def _clock(moment: int, *, is_end: bool = False) -> str:
    return "24:00" if is_end and moment % DAY_S == 0 else f"{datetime.fromtimestamp(moment, UTC):%H:%M:%S}"


def _notices(ledger: Ledger) -> Iterator[str]:
    names = ("GPU", "CPU", "GiB of memory")
    units = (1, 1000, 1024)
    for name, unit, amount in zip(names, units, ledger.beyond, strict=True):
        if amount:
            yield f"pods requested {amount / unit / HOUR_S:.1f} hours x {name} beyond what their hosts have; they are not counted"
    if ledger.homeless_s:
        yield f"{ledger.homeless_s / HOUR_S:.1f} hours of pods are on nodes that do not exist; they are not counted"
    for pool in sorted(ledger.unpriced):
        yield f"pool {pool} has no price" + " at times" * (pool not in _all_unpriced(ledger))


def _all_unpriced(ledger: Ledger) -> set[str]:
    priced = {key.pool for key, amounts in ledger.parts.items() if amounts[FIELDS.index("cost")]}
    return ledger.unpriced - priced


def _prices(history: History, start: int, end: int) -> dict[str, list[list[Any]]]:
    """Return pool -> (since, millionths of a dollar an hour, source) of the prices of the day."""
    return {
        pool: [
            [since, fact.micro, fact.source]
            for since, _, fact in lives(steps, start, end)
            if isinstance(fact, PriceFact)
        ]
        for pool, steps in sorted(history.steps[Subject.PRICE].items())
    }
