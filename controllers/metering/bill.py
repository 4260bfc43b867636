"""Adds days of ledgers up to a bill: what each team used, how much nobody used, and what is missing. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

from controllers.metering.day import COLUMNS, Day
from controllers.metering.energy import UJ_PER_KWH
from controllers.metering.facts import EnergySource, Use
from controllers.metering.ledger import HOUR_S, MICRO, Key
from controllers.metering.spans import Span

WASTES = 3
IDLE = (Use.HELD, Use.FREE)
_NAMES = COLUMNS[len(Key._fields) :]


class Sums(NamedTuple):
    """Hours, and dollars for the time with a price. unpriced_hours: of hosts, without one.

    kwh: energy, estimated_kwh of which are an estimate. unmetered_hours: of hosts, without either. energy_dollars: for energy with a
    price, which are no part of the dollars.
    """

    host_hours: float = 0.0
    gpu_hours: float = 0.0
    cpu_hours: float = 0.0
    memory_gib_hours: float = 0.0
    storage_gib_hours: float = 0.0
    unpriced_hours: float = 0.0
    dollars: float = 0.0
    kwh: float = 0.0
    estimated_kwh: float = 0.0
    unmetered_hours: float = 0.0
    energy_dollars: float = 0.0

    def to_json(self) -> dict[str, float]:
        return {name: round(value, 6) for name, value in self._asdict().items()}


_HOST_HOUR = MICRO * HOUR_S
_UNITS = (
    *(_HOST_HOUR, HOUR_S, 1000 * HOUR_S, 1024 * HOUR_S, 1024 * HOUR_S, _HOST_HOUR, MICRO),
    *(UJ_PER_KWH, UJ_PER_KWH, _HOST_HOUR, MICRO),
)


class Line(NamedTuple):
    """What amounts of a bill are added up by."""

    cluster: str
    team: str
    namespace: str
    user: str
    pool: str
    use: Use


class TrafficLine(NamedTuple):
    """What bytes of a bill are added up by. namespace: "" for pods that their node did not know. kind: where the other end was."""

    cluster: str
    team: str
    namespace: str
    user: str
    direction: str
    kind: str


@dataclass(frozen=True)
class Waste:
    """Time of hosts that nobody used. team: whose it was, "" for nobody's."""

    cluster: str
    use: Use
    team: str
    pool: str
    sums: Sums

    @property
    def words(self) -> str:
        """Return it in words: `held idle for robotics in pool gpu of jaguar`."""
        holder = f" for {self.team}" if self.team else ""
        return f"{self.use}{holder} in pool {self.pool} of {self.cluster}"


@dataclass(frozen=True)
class Ledgers:
    """One cluster's days in a span. absent: those without an object."""

    cluster: str
    days: Mapping[date, Day]
    absent: tuple[date, ...] = ()


@dataclass
class Bill:
    """A bill. troubles: what is missing in it, a sentence each. without_price: pools, as cluster/pool.

    running: days that are not closed yet, a sentence each that says what was counted. without_energy: pools, as cluster/pool, whose
    energy nobody knows, and why. traffic: bytes; empty if no node of the clusters publishes counters.
    """

    span: Span
    clusters: tuple[str, ...]
    team: str = ""
    troubles: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    without_price: tuple[str, ...] = ()
    running: tuple[str, ...] = ()
    without_energy: Mapping[str, EnergySource] = field(default_factory=dict)
    traffic: dict[TrafficLine, int] = field(default_factory=dict)
    _lines: dict[Line, list[int]] = field(default_factory=dict)

    def lines(self) -> Iterator[tuple[Line, Sums]]:
        """Yield every line, in order."""
        for line in sorted(self._lines):
            yield line, _sums(self._lines[line])

    def by(self, key: Callable[[Line], Any], only: Callable[[Line], bool] = lambda _: True) -> dict[Any, Sums]:
        """Return the sums of lines with the same key, in the order of the keys."""
        groups: dict[Any, list[int]] = defaultdict(lambda: [0] * len(_NAMES))
        for line, amounts in self._lines.items():
            if only(line):
                group = groups[key(line)]
                for at, amount in enumerate(amounts):
                    group[at] += amount
        return {each: _sums(groups[each]) for each in sorted(groups)}

    def total(self, only: Callable[[Line], bool] = lambda _: True) -> Sums:
        """Return the sums of all lines."""
        return self.by(lambda _: "", only).get("", Sums())

    def shares(self) -> dict[Use, float]:
        """Return each use's share of GPU hours, or of host hours if there are no GPUs. Shares of what was counted."""
        sums, whole = self.by(lambda line: line.use), self.total()
        at = 1 if whole.gpu_hours else 0
        return {use: sums[use][at] / whole[at] if use in sums and whole[at] else 0.0 for use in Use}

    @property
    def idle_share(self) -> float:
        """Return the share that nobody used although it was in service."""
        shares = self.shares()
        return sum(shares[use] for use in IDLE)

    def wastes(self) -> list[Waste]:
        """Return the largest amounts of time that nobody used: by what they cost, then by GPUs, then by hosts."""
        groups = self.by(
            lambda line: (line.cluster, line.use, line.team, line.pool), lambda line: _is_waste(line, self.team)
        )
        wastes = [Waste(cluster, use, team, pool, sums) for (cluster, use, team, pool), sums in groups.items()]
        wastes.sort(key=lambda waste: (waste.sums.dollars, waste.sums.gpu_hours, waste.sums.host_hours), reverse=True)
        return wastes[:WASTES]

    def to_json(self) -> dict[str, Any]:
        """Return the document of `--json`."""
        return {
            "days": self.span.name,
            "zone": self.span.zone,
            "hours": self.span.hours,
            "clusters": list(self.clusters),
            "team": self.team,
            "complete": not self.troubles,
            "running": list(self.running),
            "troubles": list(self.troubles),
            "notices": list(self.notices),
            "without_price": list(self.without_price),
            "without_energy": {pool: source.value for pool, source in self.without_energy.items()},
            "currency": "USD",
            "total": self.total().to_json(),
            "shares": {use.value: round(share, 6) for use, share in self.shares().items()},
            "idle_share": round(self.idle_share, 6),
            "wastes": [{"what": waste.words, **waste.sums.to_json()} for waste in self.wastes()],
            "lines": [{**line._asdict(), "use": line.use.value, **sums.to_json()} for line, sums in self.lines()],
            "traffic": [_traffic_json(line, amount) for line, amount in sorted(self.traffic.items())],
        }


def bill(span: Span, ledgers: Iterable[Ledgers], team: str = "", silent: Mapping[str, str] | None = None) -> Bill:
    """Add up. team: only this one's lines, "" for all. silent: cluster -> why its ledger can't be read."""
    known = tuple(ledgers)
    troubles = [f"{name}: {why}" for name, why in sorted((silent or {}).items())]
    notices, unpriced, running = list[str](), set[str](), list[str]()
    silenced: dict[str, EnergySource] = {}
    made = Bill(span, tuple(each.cluster for each in known), team)
    for each in known:
        troubles += [f"{each.cluster}: {days_words(each.absent)} no object in the ledger"] if each.absent else []
        for day in each.days.values():
            troubles += [f"{each.cluster}, {day.name}: {why}" for why in day.all_missing]
            notices += [f"{each.cluster}, {day.name}: {what}" for what in day.notices]
            unpriced |= {f"{each.cluster}/{pool}" for pool in day.document["without_price"]}
            silenced |= {f"{each.cluster}/{pool}": source for pool, source in day.without_energy.items()}
            running += [f"{each.cluster}, {_counted(day)}"] if day.is_running else []
            _add(made, each.cluster, day)
            _add_traffic(made, each.cluster, day)
    made.troubles, made.notices, made.without_price = tuple(troubles), tuple(notices), tuple(sorted(unpriced))
    made.running, made.without_energy = tuple(running), dict(sorted(silenced.items()))
    return made


def days_words(days: Iterable[date]) -> str:
    """Return days in words, with their verb: `2026-11-03 to 2026-11-05 have`."""
    listed = sorted(days)
    runs: list[list[date]] = []
    for day in listed:
        if runs and (day - runs[-1][-1]).days == 1:
            runs[-1].append(day)
        else:
            runs.append([day])
    words = [f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]
    return f"{', '.join(words)} {'has' if len(listed) == 1 else 'have'}"


def _counted(day: Day) -> str:
    start, end = (f"{datetime.fromtimestamp(moment, UTC):%H:%M:%S}" for moment in day.span)
    return f"{day.name} is not closed yet: counted from {start} to {end} UTC"


def _add(made: Bill, cluster: str, day: Day) -> None:
    for key, amounts in day.rows():
        if made.span.start <= key.hour < made.span.end and made.team in ("", key.team):
            total = made._lines.setdefault(_line(cluster, key), [0] * len(_NAMES))
            for at, name in enumerate(_NAMES):
                total[at] += amounts[name]


def _add_traffic(made: Bill, cluster: str, day: Day) -> None:
    for key, amount in day.traffic():
        if made.span.start <= key.hour < made.span.end and made.team in ("", key.team):
            line = TrafficLine(cluster, *key[1:])
            made.traffic[line] = made.traffic.get(line, 0) + amount


def _traffic_json(line: TrafficLine, amount: int) -> dict[str, Any]:
    words = line._asdict()
    kind = words.pop("kind")
    return {**words, "class": kind, "bytes": amount}


def _line(cluster: str, key: Key) -> Line:
    return Line(cluster, key.team, key.namespace, key.user, key.pool, key.use)


def _is_waste(line: Line, team: str) -> bool:
    return line.use is not Use.USED and bool(line.pool) and team in ("", line.team)


def _sums(amounts: list[int]) -> Sums:
    return Sums(*(amount / unit for amount, unit in zip(amounts, _UNITS, strict=True)))
