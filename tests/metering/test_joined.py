"""Bills of days added up are the bill of all of them at once: of everybody, of a team, of several clusters, and what is missing."""

from __future__ import annotations

from datetime import UTC, date, timedelta

import pytest

from controllers.metering import day as days
from controllers.metering.bill import Bill, Ledgers, bill, joined
from controllers.metering.day import Day, Made
from controllers.metering.facts import PriceFact, SpaceFact
from controllers.metering.history import read
from controllers.metering.journal import DAY_S, Segment
from controllers.metering.spans import Span, span
from tests.metering.lives import DAY, HOUR, START, entry, host, pod

BEFORE = DAY - timedelta(days=1)


def days_of(cluster: str) -> dict[date, Day]:
    """Return two days of a cluster in which nobody watched for two hours, with a team's hosts and a pool without a price."""
    begin = START - DAY_S - HOUR
    known = (
        entry(begin, "h1", host()),
        entry(begin, "h2", host("vision")),
        entry(begin, "h3", host(pool="old")),
        entry(begin, "team-robotics", SpaceFact("robotics")),
        entry(begin, "gpu", PriceFact(10_000_000, "spec")),
        entry(START - 5 * HOUR, "u1", pod("h1", 6)),
    )
    late = START + 3 * HOUR
    segments = [
        Segment(cluster, begin, begin, 0, True, known),
        Segment(cluster, begin, late, begin, False, ()),
        Segment(cluster, late + 2 * HOUR, START + 2 * DAY_S, late, True, known),
    ]
    return {day: days.make(cluster, day, read(segments), Made(START, 1, "0")) for day in (BEFORE, DAY)}


@pytest.fixture(scope="module")
def fleet() -> dict[str, dict[date, Day]]:
    return {name: days_of(name) for name in ("lab", "horus")}


def one(day: date) -> Span:
    return span(day, day, UTC, "UTC")


@pytest.mark.parametrize("team", ["", "robotics", "vision", "nobody"])
def test_bills_of_days_and_clusters_add_up_to_the_bill_of_all(fleet: dict[str, dict[date, Day]], team: str) -> None:
    both = span(BEFORE, DAY, UTC, "UTC")
    parts = [bill(one(day), [Ledgers(name, {day: made})]) for name, own in fleet.items() for day, made in own.items()]
    whole, added = bill(both, [Ledgers(name, own) for name, own in fleet.items()], team), joined(both, parts, team)
    assert added.to_json() == whole.to_json()
    assert added.troubles and added.without_price == ("horus/old", "lab/old")
    if team != "nobody":
        assert added.total().gpu_hours > 0


def test_a_day_of_the_sum_is_not_changed_by_it(fleet: dict[str, dict[date, Day]]) -> None:
    part = bill(one(DAY), [Ledgers("lab", {DAY: fleet["lab"][DAY]})])
    before = part.to_json()
    for _ in range(2):
        joined(one(DAY), [part, part])
    assert part.to_json() == before


def test_days_without_an_object_are_said_next_to_days_that_are_there(fleet: dict[str, dict[date, Day]]) -> None:
    there: Bill = bill(one(DAY), [Ledgers("lab", {DAY: fleet["lab"][DAY]})])
    gone = bill(one(BEFORE), [Ledgers("lab", {}, (BEFORE,))], silent={"horus": "no answer"})
    added = joined(span(BEFORE, DAY, UTC, "UTC"), [gone, there])
    assert added.troubles[:2] == ("horus: no answer", f"lab: {BEFORE} has no object in the ledger")
    assert added.clusters == ("lab",)
