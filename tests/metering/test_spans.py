"""Days of a time zone have 23, 24 or 25 hours; UTC's always have 24. Names, and days that are refused."""

from __future__ import annotations

from datetime import date
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from controllers.metering.spans import Span, span


def of(first: str, last: str = "", zone: str = "UTC") -> Span:
    return span(date.fromisoformat(first), date.fromisoformat(last or first), ZoneInfo(zone), zone)


@pytest.mark.parametrize(
    ("day", "zone", "hours", "utc_days"),
    [
        ("2026-03-29", "Europe/Berlin", 23, 2),
        ("2026-10-25", "Europe/Berlin", 25, 2),
        ("2026-11-26", "Europe/Berlin", 24, 2),
        ("2026-03-08", "America/Los_Angeles", 23, 2),
        ("2026-11-01", "America/Los_Angeles", 25, 2),
        ("2026-03-29", "UTC", 24, 1),
    ],
)
def test_a_day_in_which_clocks_change_has_23_or_25_hours(day: str, zone: str, hours: int, utc_days: int) -> None:
    one = of(day, zone=zone)
    assert (one.hours, len(list(one.utc_days()))) == (hours, utc_days)


def test_days_follow_each_other_without_an_hour_between_them_or_twice() -> None:
    days = [of(f"2026-10-{number}", zone="Europe/Berlin") for number in range(20, 31)]
    assert all(one.end == other.start for one, other in pairwise(days))
    assert sum(day.hours for day in days) == of("2026-10-20", "2026-10-30", "Europe/Berlin").hours == 11 * 24 + 1


def test_an_interval_of_whole_months_is_named_after_the_month() -> None:
    assert [of("2026-11-01", "2026-11-30").name, of("2026-11-02").name, of("2026-11-01", "2026-11-02").name] == [
        "2026-11",
        "2026-11-02",
        "2026-11-01 to 2026-11-02",
    ]


def test_a_zone_whose_days_begin_within_an_hour_is_refused_and_so_are_days_in_the_wrong_order() -> None:
    with pytest.raises(ValueError, match="midnight in Asia/Kolkata is between two whole hours of UTC"):
        of("2026-11-26", zone="Asia/Kolkata")
    with pytest.raises(ValueError, match="2026-11-25 is before 2026-11-26"):
        of("2026-11-26", "2026-11-25")
