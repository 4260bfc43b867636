"""Adds the bills that are in memory up for a page: of a month or a day, of all clusters or one, of everybody or a team. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, timedelta

from controllers.metering import bill as bills
from controllers.metering import spans
from controllers.metering.bill import Bill, Ledgers, Sums
from controllers.metering.facts import Use
from controllers.metering.spans import Span
from controllers.web.facts import ClusterFacts

_MONTH, _DAY = 7, 10
"""Lengths of 2026-11 and 2026-11-27."""


@dataclass(frozen=True)
class Period:
    """A month or a day. last: the last day of it that is over; before `first` if none is."""

    name: str
    first: date
    last: date

    @property
    def is_month(self) -> bool:
        return len(self.name) == _MONTH

    @property
    def month(self) -> str:
        return self.name[:_MONTH]

    @property
    def dates(self) -> tuple[date, ...]:
        """Return its days that are over."""
        return tuple(self.first + timedelta(days=number) for number in range((self.last - self.first).days + 1))

    @property
    def span(self) -> Span:
        return spans.span(self.first, self.last, UTC, "UTC")


def period(name: str, today: date) -> Period | None:
    """Return the period of a name such as 2026-11 or 2026-11-27; None if it is none, or has not begun. today: in UTC."""
    try:
        first = date.fromisoformat(f"{name}-01" if len(name) == _MONTH else name)
    except ValueError:
        return None
    if not first.isoformat().startswith(name) or len(name) not in (_MONTH, _DAY) or first > today:
        return None  # Python reads other forms too, such as 2027-W02-4
    end = _following(first) if len(name) == _MONTH else first + timedelta(days=1)
    return Period(name, first, min(end, today) - timedelta(days=1))


def present(today: date) -> Period:
    """Return the month of which the last day is over that is over: on the first of a month, the month before."""
    yesterday = today - timedelta(days=1)
    return Period(f"{yesterday:%Y-%m}", yesterday.replace(day=1), yesterday)


def neighbours(own: Period, today: date) -> tuple[Period | None, Period | None]:
    """Return the month or the day before and after; None after the last one that has a day that is over."""
    before = own.first - timedelta(days=1)
    after = _following(own.first) if own.is_month else own.first + timedelta(days=1)
    size = _MONTH if own.is_month else _DAY
    following = period(after.isoformat()[:size], today)
    return period(before.isoformat()[:size], today), following if following and following.dates else None


@dataclass(frozen=True)
class OnDay:
    """A day of a bill. uses: hours by use, of GPUs or of hosts."""

    day: date
    uses: Mapping[Use, float]
    sums: Sums


@dataclass(frozen=True)
class Billed:
    """A bill of a page. days: its days that are over. unit: of their hours: of GPUs, or of hosts if there are no GPUs."""

    whole: Bill
    days: tuple[OnDay, ...]
    unit: str


def billed(own: Period, clusters: Iterable[ClusterFacts], team: str, now_s: float) -> Billed:
    """Return the bill of these clusters. team: only this one's lines, "" for everybody's."""
    named, dates = tuple(clusters), own.dates
    absent = bills.bill(own.span, _absent(named, dates), team, dict(_silent(named, dates, now_s)))
    whole = bills.joined(own.span, [absent, *_parts(own, named)], team)
    at, unit = (1, "GPU hours") if whole.total().gpu_hours else (0, "host hours")
    return Billed(whole, tuple(_on(day, named, team, at) for day in dates), unit)


def _parts(own: Period, clusters: Iterable[ClusterFacts]) -> Iterator[Bill]:
    for each in clusters:
        if kept := each.bills.value:
            part = kept.months.get(own.name) if own.is_month else kept.days.get(own.first)
            if part:
                yield part


def _on(day: date, clusters: Iterable[ClusterFacts], team: str, at: int) -> OnDay:
    uses: dict[Use, float] = {}
    total = [0.0] * len(Sums._fields)
    for each in clusters:
        for (whose, use), sums in (each.bills.value.uses.get(day, {}) if each.bills.value else {}).items():
            if team in ("", whose):
                uses[use] = uses.get(use, 0.0) + sums[at]
                total = [one + other for one, other in zip(total, sums, strict=True)]
    return OnDay(day, uses, Sums(*total))


def _absent(clusters: Iterable[ClusterFacts], dates: tuple[date, ...]) -> Iterator[Ledgers]:
    """Yield each cluster that has a ledger, with its days that have no object."""
    for each in clusters:
        kept = each.bills.value
        if kept and not kept.lacks:
            lacking = (day for day in dates if day >= kept.since and day not in (*kept.days, *kept.unread, *kept.wrong))
            yield Ledgers(each.name, {}, tuple(lacking))


def _silent(clusters: Iterable[ClusterFacts], dates: tuple[date, ...], now_s: float) -> Iterator[tuple[str, str]]:
    """Yield (cluster, what is missing of its ledger)."""
    for each in clusters:
        if why := "; ".join(_reasons(each, dates, now_s)):
            yield each.name, why


def _reasons(facts: ClusterFacts, dates: tuple[date, ...], now_s: float) -> Iterator[str]:
    trouble = facts.spec.trouble(now_s) or facts.bills.trouble(now_s)
    if trouble:
        yield trouble.splitlines()[0]
    kept = facts.bills.value
    if kept is None:
        if not trouble and facts.bills.at_s is None:
            yield "its ledger was not read yet"
        return
    if kept.lacks:
        yield kept.lacks
    if unread := kept.unread.intersection(dates):
        yield f"{len(unread)} days are still being read"
    yield from (why for day, why in kept.wrong.items() if day in dates)
    if dates and dates[0] < kept.since:
        yield f"days before {kept.since} are not kept here"


def _following(first: date) -> date:
    """Return the first day of the month after."""
    return (first.replace(day=28) + timedelta(days=4)).replace(day=1)
