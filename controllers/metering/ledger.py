"""Counts an interval of a history: every host's time is split into parts, and the parts are added up. No clock, no I/O.

At each moment a host has rooms (GPUs, CPU, memory) that pods request; the rest is idle. A host's own time is split like its
GPUs, or like its CPU if it has none, in microseconds. In a gap, only what objects' own times prove counts; the rest is missing.
So parts and what is missing add up to capacity times time, exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from controllers.metering import energy
from controllers.metering.energy import HOUR_S, MICRO, Lacking, Meter
from controllers.metering.facts import EnergyFact, Fact, HostFact, PodFact, PriceFact, Room, Subject, Use, VolumeFact
from controllers.metering.history import Gap, History, lives
from controllers.metering.payers import Payer, Payers

__all__ = ["HOUR_S", "MICRO", "Amounts", "Key", "Ledger", "count"]


class Key(NamedTuple):
    """What amounts are added up by. hour: its beginning, Unix time. pool: "" for volumes, which belong to none."""

    hour: int
    team: str
    namespace: str
    user: str
    pool: str
    use: Use


class Amounts(NamedTuple):
    """Amounts of a part, each in its unit times seconds; memory and storage in MiB, CPU in thousandths.

    host_us: microseconds of whole hosts. unpriced_us: those of them whose price is unknown. cost: of the others, in
    host_us times millionths of a dollar an hour. energy: in microjoules; estimated: the part of it that is an estimate;
    unmetered_us: microseconds of hosts without either; energy_cost: in energy times millionths of a dollar a kWh.
    """

    host_us: int = 0
    gpus: int = 0
    cpu: int = 0
    memory: int = 0
    storage: int = 0
    unpriced_us: int = 0
    cost: int = 0
    energy: int = 0
    estimated: int = 0
    unmetered_us: int = 0
    energy_cost: int = 0


FIELDS = Amounts._fields
CLOSING = ("host_us", "gpus", "cpu", "memory", "storage", "energy")
"""The amounts whose parts add up to a capacity."""


class Claim(NamedTuple):
    """What a payer's pod requests of a host in an interval."""

    start: int
    end: int
    pod: str
    payer: Payer
    need: Room


@dataclass
class Ledger:
    """The sums of an interval. parts: of every use. capacity: counted from hosts and volumes alone. missing: of all gaps.

    gaps: of the history, in the interval. beyond: what pods requested beyond their hosts' capacity. homeless_s:
    seconds of pods whose node is gone. unpriced: pools without a price. lacking: what has no energy.
    """

    start: int
    end: int
    parts: dict[Key, list[int]] = field(default_factory=dict)
    capacity: list[int] = field(default_factory=lambda: [0] * len(FIELDS))
    missing: list[int] = field(default_factory=lambda: [0] * len(FIELDS))
    gaps: tuple[Gap, ...] = ()
    beyond: list[int] = field(default_factory=lambda: [0, 0, 0])
    homeless_s: int = 0
    unpriced: set[str] = field(default_factory=set)
    lacking: Lacking = field(default_factory=Lacking)

    def sums(self) -> Amounts:
        """Return the sums of all parts."""
        return Amounts(*map(sum, zip(*self.parts.values(), strict=True))) if self.parts else Amounts()

    def add(self, key: Key, amounts: Iterable[int]) -> None:
        """Add amounts, in the order of `Amounts`, to a part."""
        total = self.parts.get(key)
        if total is None:
            self.parts[key] = list(amounts)
            return
        for at, amount in enumerate(amounts):
            total[at] += amount


def count(history: History, start: int, end: int) -> Ledger:
    """Count the interval from `start` to `end`."""
    gaps = history.gaps_in(start, end)
    ledger = Ledger(start, end, gaps=gaps)
    payers = Payers(history.steps[Subject.SPACE], start, end)
    pods = _by_node(history, start, end)
    for name in sorted(history.steps[Subject.HOST]):
        hosted = list(_hosted(history, name, start, end))
        if hosted:
            claims = list(_claims(payers, hosted, pods.pop(name, ()), ledger))
            meter = Meter(history.steps[Subject.POWER].get(name, []), start, end)
            _Host(ledger, history, name, hosted, claims, meter).count()
        else:
            ledger.homeless_s += sum(until - since for since, until, _, _ in pods.pop(name, ()))
    ledger.homeless_s += sum(until - since for own in pods.values() for since, until, _, _ in own)
    _volumes(ledger, history, payers)
    return ledger


_Life = tuple[int, int, str, PodFact]


def _hosted(history: History, name: str, start: int, end: int) -> Iterator[tuple[int, int, HostFact]]:
    """Yield (start, end, fact) of a host."""
    for first, last, fact in lives(history.steps[Subject.HOST][name], start, end):
        if isinstance(fact, HostFact):
            yield first, last, fact


def _by_node(history: History, start: int, end: int) -> dict[str, list[_Life]]:
    """Return node -> (start, end, UID, fact) of its pods."""
    by_node: dict[str, list[_Life]] = {}
    for uid, steps in history.steps[Subject.POD].items():
        for first, last, fact in lives(steps, start, end):
            if isinstance(fact, PodFact):
                by_node.setdefault(fact.node, []).append((first, last, uid, fact))
    return by_node


def _claims(
    payers: Payers, hosted: list[tuple[int, int, HostFact]], pods: Iterable[_Life], ledger: Ledger
) -> Iterator[Claim]:
    """Yield the claims on a host: pods, split where their payer changes, and without the time in which the host did not exist."""
    for first, last, uid, pod in pods:
        counted = 0
        for since, until, host in hosted:
            begin, finish = max(first, since), min(last, until)
            if begin < finish:
                counted += finish - begin
                for one, other, payer in payers.of(pod.namespace, host.team, begin, finish):
                    yield Claim(one, other, uid, payer, pod.need)
        ledger.homeless_s += last - first - counted


class _Part(NamedTuple):
    """A part of a host in a piece of time. key: None for what is missing. own_us: its part of the host's time."""

    key: Key | None
    own_us: int
    room: Sequence[int]


_Terms = tuple[int | None, EnergyFact | None]
"""What is known of a pool for a time: the price of an hour in millionths of a dollar, and its energy."""


class _Host:
    """One host in an interval."""

    def __init__(
        self,
        ledger: Ledger,
        history: History,
        name: str,
        hosted: list[tuple[int, int, HostFact]],
        claims: list[Claim],
        meter: Meter,
    ) -> None:
        self._ledger, self._history, self._name = ledger, history, name
        self._hosted, self._claims, self._meter = hosted, claims, meter

    def count(self) -> None:
        """Add the host to the ledger, piece by piece: in a piece nothing changes but its power."""
        opening: dict[int, list[Claim]] = {}
        closing: dict[int, list[Claim]] = {}
        for claim in self._claims:
            opening.setdefault(claim.start, []).append(claim)
            closing.setdefault(claim.end, []).append(claim)
        for since, until, host in self._hosted:
            active: dict[tuple[str, Payer], Claim] = {}
            terms = self._terms(host.pool, since, until)
            edges = {since, until, *range(since - since % HOUR_S + HOUR_S, until, HOUR_S)}
            edges |= {term[0] for term in terms}
            edges |= {moment for gap in self._ledger.gaps for moment in gap[:2] if since < moment < until}
            edges |= {moment for moment in (*opening, *closing) if since < moment < until}
            at = 0
            for first, last in pairwise(sorted(edges)):
                for claim in closing.get(first, ()):
                    active.pop((claim.pod, claim.payer), None)
                for claim in opening.get(first, ()):
                    active[claim.pod, claim.payer] = claim
                while terms[at][1] <= first:
                    at += 1
                self._piece(first, last, host, active, terms[at][2])

    def _terms(self, pool: str, since: int, until: int) -> list[tuple[int, int, _Terms]]:
        """Return (start, end, terms) of the whole interval."""
        steps = self._history.steps
        prices = list(lives(steps[Subject.PRICE].get(pool, []), since, until))
        energies = list(lives(steps[Subject.ENERGY].get(pool, []), since, until))
        edges = {since, until, *(moment for each in (*prices, *energies) for moment in each[:2])}
        return [
            (first, last, (_price(_during(prices, first)), _energy(_during(energies, first))))
            for first, last in pairwise(sorted(edges))
        ]

    def _piece(
        self, first: int, last: int, host: HostFact, active: dict[tuple[str, Payer], Claim], terms: _Terms
    ) -> None:
        span, room, ledger = last - first, host.room, self._ledger
        whole_us = span * MICRO
        for at, amount in enumerate((whole_us, *(part * span for part in room))):
            ledger.capacity[at] += amount
        hour = first - first % HOUR_S
        used = {} if host.down else self._used(active, room, span)
        shares_us, left_us = _shares(used, room, whole_us)
        left = [*room]
        parts = []
        for payer, need in used.items():
            for at in range(3):
                left[at] -= need[at]
            key = Key(hour, payer.team, payer.namespace, payer.user, host.pool, Use.USED)
            parts.append(_Part(key, shares_us[payer], need))
        self._add(first, last, host, [*parts, *self._idle(first, last, host, left, left_us)], terms)

    def _idle(self, first: int, last: int, host: HostFact, left: list[int], left_us: int) -> Iterator[_Part]:
        """Yield what no pod requests. In a gap it is missing, unless the host was down all the time."""
        hour = first - first % HOUR_S
        if not host.down and any(gap.start <= first < gap.end for gap in self._ledger.gaps):
            yield _Part(None, left_us, left)
            return
        bad = min(host.bad_gpus, left[0]) if host.idle in (Use.FREE, Use.HELD) else 0
        if bad:
            bad_us = (last - first) * MICRO * bad // host.room.gpus
            yield _Part(Key(hour, "", "", "", host.pool, Use.BROKEN), bad_us, (bad, 0, 0))
            left, left_us = [left[0] - bad, *left[1:]], left_us - bad_us
        if left_us or any(left):
            team = host.team if host.idle is Use.HELD else ""
            yield _Part(Key(hour, team, "", "", host.pool, host.idle), left_us, left)

    def _used(self, active: dict[tuple[str, Payer], Claim], room: Room, span: int) -> dict[Payer, list[int]]:
        """Return what each payer's pods have of the host: what they request, in the order of their UIDs, as long as it lasts."""
        used: dict[Payer, list[int]] = {}
        left = [*room]
        for claim in active.values():
            own = used.setdefault(claim.payer, [0, 0, 0])
            for at, need in enumerate(claim.need):
                own[at] += need
                left[at] -= need
        if min(left) >= 0:
            return used
        used, left = {}, [*room]
        for _, claim in sorted(active.items()):
            own = used.setdefault(claim.payer, [0, 0, 0])
            for at, need in enumerate(claim.need):
                has = min(need, left[at])
                own[at] += has
                left[at] -= has
                self._ledger.beyond[at] += (need - has) * span
        return used

    def _add(self, first: int, last: int, host: HostFact, parts: list[_Part], terms: _Terms) -> None:
        """Add the parts of a piece, with their energy. They are the whole host."""
        span, (price, declared) = last - first, terms
        owns, used = (
            [part.own_us for part in parts],
            [part.key is not None and part.key.use is Use.USED for part in parts],
        )
        energies = energy.parts(owns, used, self._meter.between(first, last), span, declared)
        ledger, at = self._ledger, FIELDS.index("energy")
        ledger.capacity[at] += sum(each.energy for each in energies)
        unmetered_us = sum(each.unmetered_us for each in energies)
        ledger.lacking.note(host.pool, self._name, span, unmetered_us, declared)
        micro = declared.micro or 0 if declared else 0
        for part, own in zip(parts, energies, strict=True):
            gpus, cpu, memory = (amount * span for amount in part.room)
            cost = (part.own_us, 0) if price is None else (0, part.own_us * price)
            amounts = (part.own_us, gpus, cpu, memory, 0, *cost, *own, own.energy * micro)
            if part.key is not None:
                if price is None:
                    ledger.unpriced.add(host.pool)
                ledger.add(part.key, amounts)
                continue
            for name in CLOSING:
                ledger.missing[FIELDS.index(name)] += amounts[FIELDS.index(name)]


def _during(lives_: Iterable[tuple[int, int, Fact]], moment: int) -> Fact | None:
    return next((fact for start, end, fact in lives_ if start <= moment < end), None)


def _price(fact: Fact | None) -> int | None:
    return fact.micro if isinstance(fact, PriceFact) else None


def _energy(fact: Fact | None) -> EnergyFact | None:
    return fact if isinstance(fact, EnergyFact) else None


def _shares(used: Mapping[Payer, list[int]], room: Room, whole_us: int) -> tuple[dict[Payer, int], int]:
    """Split a host's time: return (payer -> microseconds, what is left). What rounding leaves of a full host is its last payer's."""
    weight, whole = (0, room.gpus) if room.gpus else (1, room.cpu)
    shares = {payer: whole_us * need[weight] // whole if whole else 0 for payer, need in used.items()}
    left_us = whole_us - sum(shares.values())
    holders = [payer for payer, need in used.items() if need[weight]]
    if holders and sum(need[weight] for need in used.values()) == whole:
        shares[max(holders)] += left_us
        left_us = 0
    return shares, left_us


def _volumes(ledger: Ledger, history: History, payers: Payers) -> None:
    """Add volumes: used by the namespace of their claim, else free."""
    at = FIELDS.index("storage")
    for name in sorted(history.steps[Subject.VOLUME]):
        for since, until, fact in lives(history.steps[Subject.VOLUME][name], ledger.start, ledger.end):
            if not isinstance(fact, VolumeFact):
                continue
            ledger.capacity[at] += fact.size * (until - since)
            for first, last, payer in payers.of(fact.namespace, "", since, until):
                edges = sorted({first, last, *range(first - first % HOUR_S + HOUR_S, last, HOUR_S)})
                for one, other in pairwise(edges):
                    use = Use.USED if fact.namespace else Use.FREE
                    key = Key(one - one % HOUR_S, payer.team, payer.namespace, payer.user, "", use)
                    ledger.add(key, Amounts(storage=fact.size * (other - one)))
