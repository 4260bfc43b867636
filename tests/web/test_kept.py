"""The days of a ledger in memory: each is read once, a correction replaces it, and what can't be read hides nothing else."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from obstore.store import MemoryStore

from controllers.bookkeeping.store import LedgerStore
from controllers.metering import day as days
from controllers.metering.day import Day
from controllers.web.kept import DayKeeper, since_of
from controllers.web.parts import Reader
from operations.record.store import RecordStore, RecordStoreError
from tests.web.bills import FIRST, TODAY, YESTERDAY, day_of, ledger
from tests.web.support import NOW_S

DAYS = (YESTERDAY - timedelta(days=1), YESTERDAY)


class Counting(LedgerStore):
    """A ledger that counts what is read of it. error: raised by each call."""

    def __init__(self, objects: MemoryStore) -> None:
        super().__init__(RecordStore(objects, "the bucket", shared=True))
        self.read: list[tuple[str, int]] = []
        self.error: Exception | None = None

    def day(self, name: str, revision: int) -> Day:
        if self.error:
            raise self.error
        self.read.append((name, revision))
        return super().day(name, revision)


@pytest.fixture
def objects() -> MemoryStore:
    made = MemoryStore()
    ledger(*(day_of("lab", day) for day in DAYS), objects=made)
    return made


@pytest.fixture
def store(objects) -> Counting:
    return Counting(objects)


@pytest.fixture
def keeper() -> DayKeeper:
    return DayKeeper("lab", lambda: NOW_S)


def test_a_day_is_read_once_the_newest_first(store, keeper):
    published = []
    kept = keeper.read(store, published.append)
    assert store.read == [(YESTERDAY.isoformat(), 1), (DAYS[0].isoformat(), 1)]
    assert [(set(each.days), set(each.unread)) for each in published] == [({YESTERDAY}, {DAYS[0]}), (set(DAYS), set())]
    assert (set(kept.days), kept.teams, kept.lacks) == (set(DAYS), {"robotics", "vision"}, "")
    keeper.read(store, published.append)
    assert (len(store.read), len(published)) == (2, 2)


def test_a_correction_is_read_and_replaces_the_day(store, objects, keeper):
    before = keeper.read(store, str).days[YESTERDAY]
    corrected = dict(day_of("lab", YESTERDAY, robots="ants").document, revision=2)
    ledger(Day(corrected), objects=objects)
    kept = keeper.read(store, str)
    assert store.read[2:] == [(YESTERDAY.isoformat(), 2)]
    assert (before.teams, kept.days[YESTERDAY].teams) == ({"robotics", "vision"}, {"ants", "vision"})


def test_a_day_that_is_no_day_is_named_and_the_others_are_read(store, objects, keeper):
    objects.put(days.key_of(FIRST, 1), b"{}")
    kept = keeper.read(store, str)
    assert set(kept.days) == set(DAYS)
    assert "is not a day of a ledger" in kept.wrong[FIRST]


def test_a_day_of_a_newer_menagerie_is_named_and_read_again_later(store, objects, keeper):
    newer = {**day_of("lab", FIRST).document, "version": 99}
    objects.put(days.key_of(FIRST, 1), Day(newer).to_bytes())
    for _ in range(2):
        kept = keeper.read(store, str)
        assert "a newer Menagerie wrote it" in kept.wrong[FIRST]
        assert set(kept.days) == set(DAYS)


def test_a_bucket_that_falls_silent_loses_nothing_that_was_read(store, keeper):
    reader: Reader = Reader("x", lambda: keeper.read(store, reader.so_far), str, clock=lambda: NOW_S)
    reader.once()
    store.error = RecordStoreError("the bucket does not answer")
    ledger(Day(dict(day_of("lab", YESTERDAY).document, revision=2)), objects=store._records._objects)
    reader.once()
    assert (set(reader.part.value.days), reader.part.problem) == (set(DAYS), "the bucket does not answer")
    store.error = None
    reader.once()
    assert (reader.part.problem, store.read[-1]) == ("", (YESTERDAY.isoformat(), 2))


def test_while_the_first_reading_lasts_its_days_are_shown_and_it_is_no_silence(store, keeper):
    times = iter(range(0, 1000, 25))
    parts = []
    reader: Reader = Reader("x", lambda: keeper.read(store, publish), str, clock=lambda: float(next(times)))

    def publish(value):
        reader.so_far(value)
        parts.append(reader.part)

    reader.once()
    assert [(len(part.value.days), part.trouble(part.at_s + 29)) for part in parts] == [(1, ""), (2, "")]


def test_days_before_last_month_are_not_kept_and_days_of_tomorrow_neither(objects):
    old = since_of(TODAY) - timedelta(days=1)
    ledger(day_of("lab", old), day_of("lab", TODAY + timedelta(days=1)), objects=objects)
    now = [NOW_S]
    keeper = DayKeeper("lab", lambda: now[0])
    assert set(keeper.read(Counting(objects), str).days) == set(DAYS)
    now[0] += 60 * 86_400
    assert keeper.read(Counting(objects), str).days == {}


def test_the_window_begins_with_last_month():
    assert since_of(date(2027, 1, 1)) == date(2026, 12, 1)
    assert since_of(date(2027, 3, 31)) == date(2027, 2, 1)


def test_a_ledger_without_a_day_says_why(keeper):
    empty = Counting(MemoryStore())
    assert keeper.read(empty, str).lacks == "its ledger has no day yet"
    assert keeper.read(empty, str, "no metering").lacks == "no metering"
