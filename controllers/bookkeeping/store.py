"""The ledger's objects in the cluster's bucket: segments of the journal, and days. None of them is ever overwritten."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date

from cluster.errors import FailedError
from controllers.metering import day as days
from controllers.metering import journal
from controllers.metering.day import Day
from controllers.metering.history import History
from controllers.metering.journal import DAY_S, Segment
from operations.record.store import ConflictError, RecordStore

BACK_DAYS = 35
"""How far back the journal is looked for, and days without an object are counted."""
_AT_ONCE = 16
_AHEAD = 64
"""Segments that are read before they are needed."""


class OtherWriterError(FailedError):
    """The object exists with other bytes: another process keeps the same ledger."""

    code = "ledger"


class LedgerStore:
    """The ledger of one cluster. Methods raise RecordStoreError, NewerDataError, and FailedError for an object that can't be read.

    may_write: called before each write; it raises if this process may not write any more.
    """

    def __init__(self, records: RecordStore, may_write: Callable[[], None] = lambda: None) -> None:
        self._records, self._may_write = records, may_write

    def append(self, segment: Segment) -> None:
        """Write a segment. Raises OtherWriterError."""
        self._create(segment.key, journal.write(segment))

    def begin(self, now: int) -> int:
        """Return the end of the oldest segment of the last `BACK_DAYS` days, 0 if there is none."""
        for back in range(BACK_DAYS, -2, -1):
            if keys := self._segments_of(now - back * DAY_S):
                return journal.end_of(keys[0])
        return 0

    def recent(self, now: int) -> tuple[History, Segment | None]:
        """Return what the journal says from its last whole segment on, and its last segment; None if there is none."""
        keys: list[str] = []
        for back in range(-1, BACK_DAYS + 1):
            keys = [*self._segments_of(now - back * DAY_S), *keys]
            if any(map(journal.is_whole, keys)):
                break
        history, last = History(), None
        for _, last in self._read(_from_the_last_whole(keys)):
            history.add(last)
        return history, last

    def segments(self, start: int, until: int) -> Iterator[tuple[bytes, Segment]]:
        """Yield the segments that are needed to count from `start`, up to those that end at `until`, with their bytes."""
        before: list[str] = []
        for back in range(BACK_DAYS + 1):
            earlier = [key for key in self._segments_of(start - back * DAY_S) if journal.end_of(key) <= start]
            before = [*earlier, *before]
            if any(map(journal.is_whole, before)):
                break
        folders = journal.days(start, until + 1)
        inside = [key for day in folders for key in self._segments_of(day) if start < journal.end_of(key) <= until]
        yield from self._read([*_from_the_last_whole(before), *inside])

    def first_end(self, moment: int, now: int) -> int:
        """Return the end of the first segment that ends at a moment or later; the moment if there is none."""
        for day in journal.days(moment, max(moment, now) + 1):
            if ends := [end for end in map(journal.end_of, self._segments_of(day)) if end >= moment]:
                return min(ends)
        return moment

    def end(self, now: int) -> int:
        """Return the end of the newest segment, 0 if there is none."""
        for back in range(-1, BACK_DAYS + 1):
            if keys := self._segments_of(now - back * DAY_S):
                return journal.end_of(keys[-1])
        return 0

    def rebuild(self, cluster: str, day: date, until: int, revision: int = 1, *, is_running: bool = False) -> Day:
        """Count a day from the journal as it was at `until`. The same arguments give the same bytes. is_running: see `days.make`."""
        digest = days.Digest(until)
        history = History()
        for segment in digest.of(self.segments(days.bounds(day)[0], until)):
            history.add(segment)
        return days.make(cluster, day, history, digest.made, revision, is_running=is_running)

    def again(self, day: Day) -> Day:
        """Count a day again, as it was counted."""
        document = day.document
        of = str(document["cluster"]), date.fromisoformat(day.name), day.until, int(document["revision"])
        return self.rebuild(*of, is_running=day.is_running)

    def day_keys(self) -> list[str]:
        """Return the keys of all days."""
        return self._records.keys(days.PREFIX)

    def day(self, name: str, revision: int) -> Day:
        """Return a day. name: its date."""
        key = days.key_of(date.fromisoformat(name), revision)
        return self._day(key)

    def days(self, dates: Iterable[date]) -> dict[date, Day]:
        """Return the newest revision of each day that has an object."""
        revisions = days.newest(self.day_keys())
        there = [(day, days.key_of(day, revisions[day.isoformat()])) for day in dates if day.isoformat() in revisions]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return dict(zip((day for day, _ in there), pool.map(self._day, (key for _, key in there)), strict=True))

    def running(self, day: date) -> Day | None:
        """Return the newest object of a day from before its end, None if there is none."""
        keys = self._running_keys(day)
        return self._day(keys[-1]) if keys else None

    def newest_running(self) -> Day | None:
        """Return the newest object of any day from before its end, unless that day has been counted as a whole; None if there is none."""
        keys = [key for key in self._records.keys(f"{days.RUNNING}/") if key.endswith(".json")]
        newest = self._day(keys[-1]) if keys else None
        return None if newest is None or newest.name in days.newest(self.day_keys()) else newest

    def running_end(self, day: date) -> int:
        """Return up to when a day was counted before its end, 0 if it was not."""
        keys = self._running_keys(day)
        return journal.end_of(keys[-1]) if keys else 0

    def keep_running(self, day: Day) -> None:
        """Write the object of a day that has not ended. Raises OtherWriterError."""
        self._create(days.running_key(date.fromisoformat(day.name), day.until), day.to_bytes())

    def keep(self, day: Day, table: bytes) -> None:
        """Write a day: first the table as Parquet, then the JSON, which makes it count. Raises OtherWriterError."""
        date_, revision = date.fromisoformat(day.name), int(day.document["revision"])
        self._create(days.key_of(date_, revision, "parquet"), table)
        self._create(days.key_of(date_, revision), day.to_bytes())

    def _create(self, key: str, data: bytes) -> None:
        """Write an object unless it exists. An interrupted writer may have written the same bytes."""
        self._may_write()
        try:
            self._records.create(key, data)
        except ConflictError:
            stored = self._records.read(key)
            if stored is None or stored.value != data:
                raise OtherWriterError(
                    f"{self._records.where} has another {key} already: does another cluster of this name use the bucket?"
                ) from None

    def _running_keys(self, day: date) -> list[str]:
        return [key for key in self._records.keys(f"{days.running_folder(day)}/") if key.endswith(".json")]

    def _segments_of(self, moment: int) -> list[str]:
        return [key for key in self._records.keys(f"{journal.folder(moment)}/") if key.endswith(".json")]

    def _read(self, keys: list[str]) -> Iterator[tuple[bytes, Segment]]:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for first in range(0, len(keys), _AHEAD):
                some = keys[first : first + _AHEAD]
                for key, stored in zip(some, pool.map(self._records.read, some), strict=True):
                    if stored is None:
                        continue  # it was deleted just now: the next segment shows that one is missing
                    try:
                        yield stored.value, journal.read(stored.value, key)
                    except ValueError as error:
                        raise FailedError(f"{self._records.where}: {error}", code="ledger") from None

    def _day(self, key: str) -> Day:
        stored = self._records.read(key)
        if stored is None:
            raise FailedError(f"{self._records.where} no longer has {key}", code="ledger")
        try:
            return days.read(stored.value, key)
        except ValueError as error:
            raise FailedError(f"{self._records.where}: {error}", code="ledger") from None


def _from_the_last_whole(keys: list[str]) -> list[str]:
    """Return the last whole segment and those after it; all if none is whole."""
    wholes = [at for at, key in enumerate(keys) if journal.is_whole(key)]
    return keys[wholes[-1] :] if wholes else keys
