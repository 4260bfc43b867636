"""Keeps a cluster's bills by day and by month in memory. A day of a ledger never changes once it is written, so each is read once.

A correction is another object, with a higher revision, and replaces the day's bill. A month is added up when one of its days comes,
not for each page: a large cluster's has 150,000 lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cached_property

from cluster.errors import FailedError
from cluster.shared import NewerDataError
from controllers.bookkeeping.store import LedgerStore
from controllers.metering import bill as bills
from controllers.metering import day as days
from controllers.metering import spans
from controllers.metering.bill import Bill, Ledgers, Sums
from controllers.metering.day import Day
from controllers.metering.facts import Use
from controllers.metering.spans import Span
from operations.record.store import RecordStoreError

MONTHS = 2
"""The present month and the one before. A day of 5,000 lines has 3 MB in memory."""
NO_METERING = "its spec has no metering, so nobody keeps a ledger: docs/how-to/bill.md"
"""Why a cluster has no day."""

Uses = Mapping[tuple[str, Use], Sums]
"""(team, use) -> sums; "" for no team."""


@dataclass(frozen=True)
class Kept:
    """A cluster's ledger, as pages use it. Bills are of everybody.

    since: the first day that is kept. days: UTC day -> its bill. months: 2026-11 -> the bill of its days. uses: day -> its sums by
    team and use. unread: days that are in the bucket, and not here yet. wrong: day -> why its object can't be read. lacks: why there
    is no ledger, "" if there is one.
    """

    since: date
    days: Mapping[date, Bill] = field(default_factory=dict)
    months: Mapping[str, Bill] = field(default_factory=dict)
    uses: Mapping[date, Uses] = field(default_factory=dict)
    unread: frozenset[date] = frozenset()
    wrong: Mapping[date, str] = field(default_factory=dict)
    lacks: str = ""

    @cached_property
    def teams(self) -> frozenset[str]:
        """Return all teams that have a part in any day."""
        return frozenset(team for each in self.months.values() for team in each.teams)


class DayKeeper:
    """Reads the days of one cluster. name: of the cluster. now: Unix time."""

    def __init__(self, name: str, now: Callable[[], float]) -> None:
        self._name, self._now = name, now
        self._revisions: dict[date, int] = {}
        self._days: dict[date, Bill] = {}
        self._months: dict[str, Bill] = {}
        self._uses: dict[date, Uses] = {}

    def read(self, store: LedgerStore, so_far: Callable[[Kept], None], lacks: str = "") -> Kept:
        """Read the days that are not here yet, the newest first. so_far: called after each. lacks: why there may be no day at all.

        Errors: raises RecordStoreError if the bucket does not answer; what was read stays.
        """
        today = self._today()
        there = _days(days.newest(store.day_keys()), since_of(today), today - timedelta(days=1))
        for day in self._days.keys() - there.keys():
            self._forget(day)
        unread = {day for day, revision in there.items() if self._revisions.get(day) != revision}
        wrong: dict[date, str] = {}
        for day in sorted(unread, reverse=True):
            try:
                made = store.day(day.isoformat(), there[day])
            except RecordStoreError:
                raise
            except (FailedError, NewerDataError) as error:  # one object must not keep the others from being read
                wrong[day] = str(error).splitlines()[0]
            else:
                self.keep(day, made, there[day])
            unread.discard(day)
            so_far(self.kept(unread, wrong))
        return self.kept((), wrong, "" if there else lacks or "its ledger has no day yet")

    def keep(self, day: date, made: Day, revision: int) -> None:
        """Keep a day, in place of the one that was there."""
        self._forget(day)
        bill = bills.bill(one(day), [Ledgers(self._name, {day: made})])
        self._uses[day] = bill.by(lambda line: (line.team, line.use))
        self._days[day], self._revisions[day] = bill, revision
        month = f"{day:%Y-%m}"
        others = [each for each in self._days if each != day and f"{each:%Y-%m}" == month]
        if month in self._months and day < min(others, default=day):
            self._months[month] = bills.joined(one(day), [bill, self._months[month]])
        else:
            self._add_up(month)

    def _today(self) -> date:
        return datetime.fromtimestamp(self._now(), UTC).date()

    def _forget(self, day: date) -> None:
        if self._days.pop(day, None):
            del self._revisions[day], self._uses[day]
            self._add_up(f"{day:%Y-%m}")

    def _add_up(self, month: str) -> None:
        own = [day for day in sorted(self._days) if f"{day:%Y-%m}" == month]
        self._months.pop(month, None)
        if own:
            self._months[month] = bills.joined(one(own[0]), [self._days[day] for day in own])

    def kept(self, unread: Iterable[date] = (), wrong: Mapping[date, str] | None = None, lacks: str = "") -> Kept:
        """Return what is kept."""
        since = since_of(self._today())
        mine = (dict(self._days), dict(self._months), dict(self._uses))
        return Kept(since, *mine, frozenset(unread), dict(wrong or {}), lacks)


def one(day: date) -> Span:
    """Return the interval of a day of UTC."""
    return spans.span(day, day, UTC, "UTC")


def since_of(today: date) -> date:
    """Return the first day that is kept."""
    first = today.replace(day=1)
    for _ in range(MONTHS - 1):
        first = (first - timedelta(days=1)).replace(day=1)
    return first


def _days(revisions: Mapping[str, int], first: date, last: date) -> dict[date, int]:
    """Return day -> its newest revision, of these days that have an object."""
    each = (first + timedelta(days=number) for number in range((last - first).days + 1))
    return {day: revisions[day.isoformat()] for day in each if day.isoformat() in revisions}
