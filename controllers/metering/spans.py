"""The interval of a bill: days of a time zone, which may have 23 or 25 hours. The ledger's days are UTC's, with amounts by the hour."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from controllers.metering.journal import days
from controllers.metering.ledger import HOUR_S


@dataclass(frozen=True)
class Span:
    """An interval, half open, in Unix time. first, last: its days in the zone."""

    start: int
    end: int
    first: date
    last: date
    zone: str

    @property
    def hours(self) -> int:
        return (self.end - self.start) // HOUR_S

    @property
    def name(self) -> str:
        """Return the days for people: a day, a month, or from and to."""
        if self.first == self.last:
            return self.first.isoformat()
        following = self.last + timedelta(days=1)
        if self.first.day == following.day == 1 and (self.first.year, self.first.month) == (
            self.last.year,
            self.last.month,
        ):
            return f"{self.first:%Y-%m}"
        return f"{self.first.isoformat()} to {self.last.isoformat()}"

    def utc_days(self) -> Iterator[date]:
        """Yield the UTC days that have hours of it."""
        for day in days(self.start, self.end):
            yield datetime.fromtimestamp(day, UTC).date()


def span(first: date, last: date, zone: tzinfo, name: str) -> Span:
    """Return the interval from the beginning of one day to the end of another. name: of the zone.

    Errors: raises ValueError if the last is before the first, or a day of the zone begins between two whole hours of UTC.
    """
    if last < first:
        raise ValueError(f"{last.isoformat()} is before {first.isoformat()}")
    start, end = (_begin(day, zone) for day in (first, last + timedelta(days=1)))
    if start % HOUR_S or end % HOUR_S:
        raise ValueError(
            f"midnight in {name} is between two whole hours of UTC, and the ledger counts by the hour; use UTC"
        )
    return Span(start, end, first, last, name)


def _begin(day: date, zone: tzinfo) -> int:
    return int(datetime.combine(day, time(), zone).timestamp())
