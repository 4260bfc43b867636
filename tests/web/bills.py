"""Made-up ledgers for pages: days with two teams, a host without a price, a day that is incomplete and one without an object."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from controllers.bookkeeping.store import LedgerStore
from controllers.metering import day as days
from controllers.metering.day import Day, Made
from controllers.metering.facts import PriceFact, SpaceFact
from controllers.metering.history import read
from controllers.metering.journal import Segment
from controllers.web.kept import DayKeeper, Kept
from operations.record.store import RecordStore
from tests.metering.lives import HOUR, entry, host, pod
from tests.web.support import NOW_S

TODAY = datetime.fromtimestamp(NOW_S, UTC).date()
MONTH = f"{TODAY:%Y-%m}"
YESTERDAY = TODAY - timedelta(days=1)
FIRST = TODAY.replace(day=1)
ABSENT, INCOMPLETE = FIRST + timedelta(days=3), FIRST + timedelta(days=5)


def day_of(cluster: str, day: date, *, robots: str = "robotics", missed: bool = False) -> Day:
    """Return a day of 3 hosts of 8 GPUs: one that `robots` uses with 6, one held for vision, one without a price."""
    start, end = days.bounds(day)
    known = (
        entry(start - HOUR, "h1", host()),
        entry(start - HOUR, "h2", host("vision")),
        entry(start - HOUR, "h3", host(pool="old")),
        entry(start - HOUR, "team-robotics", SpaceFact(robots)),
        entry(start - HOUR, "user-ana", SpaceFact("", "ana", ("vision",))),
        entry(start - HOUR, "gpu", PriceFact(10_000_000, "spec")),
        entry(start - HOUR, "u1", pod("h1", 6, namespace="team-robotics")),
        entry(start - HOUR, "u2", pod("h1", 1, namespace="user-ana")),
    )
    first = start + 6 * HOUR if missed else start
    segments = [
        Segment(cluster, start - HOUR, start - HOUR, 0, True, known),
        Segment(cluster, first, end + HOUR, start - HOUR, missed, known if missed else ()),
    ]
    if not missed:
        segments[1] = Segment(cluster, start - HOUR, end + HOUR, start - HOUR, False, ())
    return days.make(cluster, day, read(segments), Made(end + HOUR, 2, "0"))


def kept(cluster: str, made: Iterable[Day] | None = None, **more) -> Kept:
    """Return what a reader keeps. made: days; by default those of this month until yesterday, but the absent one."""
    keeper = DayKeeper(cluster, lambda: NOW_S)
    for each in days_of(cluster) if made is None else made:
        keeper.keep(date.fromisoformat(each.name), each, 1)
    return replace(keeper.kept(), **more)


def days_of(cluster: str) -> Iterable[Day]:
    for number in range((TODAY - FIRST).days):
        if (day := FIRST + timedelta(days=number)) != ABSENT:
            yield day_of(cluster, day, missed=day == INCOMPLETE)


def ledger(*made: Day, objects) -> LedgerStore:
    """Return a ledger with these days. objects: of obstore."""
    store = LedgerStore(RecordStore(objects, "the bucket", shared=True))
    for each in made:
        store.keep(each, b"table")
    return store
