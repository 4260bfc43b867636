"""Bytes in the ledger: counters that begin again, nodes that vanish, gaps that are said, and teams that change."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controllers.metering import day as days
from controllers.metering import journal, published
from controllers.metering.day import Day, Made
from controllers.metering.facts import WAYS, CountersFact, Entry, SpaceFact, Subject
from controllers.metering.history import read
from controllers.metering.journal import DAY_S, Segment
from controllers.metering.traffic import Traffic
from tests.metering.lives import DAY, HOUR, START, entry, history, host

END, NOON = START + DAY_S, START + 12 * HOUR
MADE = Made(END + HOUR, 2, "0")
OUT = ("team-robotics", "out", "internet")


def counters(*counts: tuple[str, str, str, int], life: str = "a", resets: int = 0) -> CountersFact:
    spaces: dict[str, list[int]] = {}
    for namespace, direction, kind, count in counts:
        spaces.setdefault(namespace, [0] * len(WAYS))[WAYS.index((direction, kind))] = count
    return CountersFact(life, resets, tuple((name, tuple(reached)) for name, reached in sorted(spaces.items())))


def reading(at: int, count: int, node: str = "h1", **more: Any) -> Entry:
    return Entry(at, Subject.COUNTERS, node, counters((*OUT, count), **more))


def every(step_s: int, rate: int, start: int = START - HOUR, end: int = END + HOUR, node: str = "h1") -> list[Entry]:
    """Readings of a counter that grows by so many bytes a second."""
    return [reading(at, (at - start) * rate, node) for at in range(start, end, step_s)]


def day_of(*entries: Entry, **more: Any) -> Day:
    known = history(
        entry(START - HOUR, "h1", host()), entry(START - HOUR, "team-robotics", SpaceFact("robotics")), *entries
    )
    return days.make("lab", DAY, known, MADE, **more)


def total(day: Day) -> Counter[tuple[str, ...]]:
    """Return (team, namespace, direction, class) -> bytes."""
    sums: Counter[tuple[str, ...]] = Counter()
    for key, amount in day.traffic():
        sums[key.team, key.namespace, key.direction, key.kind] += amount
    return sums


def test_a_day_has_the_bytes_between_its_beginning_and_its_end_by_hour() -> None:
    day = day_of(*every(1700, 10))
    assert total(day) == {("robotics", *OUT): 10 * DAY_S}
    assert sorted({amount for _, amount in day.traffic()}) == [10 * HOUR]
    assert day.all_missing == ()
    assert day.document["traffic"]["complete"]


def test_without_any_node_that_publishes_a_day_says_nothing_of_traffic() -> None:
    day = day_of()
    assert (day.document["traffic"], day.all_missing, list(day.traffic())) == (None, (), [])


def test_a_counter_that_is_lower_than_before_began_again_and_the_time_between_is_said() -> None:
    day = day_of(reading(START, 1000), reading(NOON, 500), reading(END, 700))
    assert total(day) == {("robotics", *OUT): 500 + 200}
    assert day.document["traffic"]["notices"] == [
        "counters of h1 began again between 00:00:00 and 12:00:00: what they had counted since then is lost"
    ]
    assert day.all_missing == ("traffic: no counters for 12.0 hours of nodes: h1",)


def test_counters_of_another_life_began_again_also_if_they_are_higher() -> None:
    day = day_of(reading(START, 1000), reading(NOON, 5000, life="b"), reading(END, 6000, life="b"))
    assert total(day) == {("robotics", *OUT): 6000}
    assert not day.document["traffic"]["complete"]


def test_a_node_that_vanishes_lacks_the_time_since_its_last_reading_until_it_was_gone() -> None:
    gone = NOON + HOUR
    day = day_of(
        *every(600, 1, end=NOON + 1), Entry(gone, Subject.HOST, "h1", None), Entry(gone, Subject.COUNTERS, "h1", None)
    )
    assert total(day) == {("robotics", *OUT): 12 * HOUR}
    assert day.all_missing == ("traffic: no counters for 1.0 hours of nodes: h1",)
    short = [entry(START - HOUR, f"h{number}", host()) for number in range(2, 60)]
    many = [each for number in range(2, 60) for each in every(3600, 1, node=f"h{number}")]
    day = day_of(*short, *many, *every(600, 1, end=NOON + 1), Entry(NOON + 900, Subject.HOST, "h1", None))
    assert day.all_missing == ()


def test_a_node_that_comes_back_goes_on_from_its_last_reading_however_long_that_is_ago() -> None:
    day = day_of(reading(START, 100), reading(END, 100 + 24 * 7))
    assert total(day) == {("robotics", *OUT): 24 * 7}
    assert {amount for _, amount in day.traffic()} == {7}
    assert day.all_missing == ()


def test_nodes_that_publish_nothing_are_named_once_others_do() -> None:
    others = [entry(START - HOUR, f"h{number}", host()) for number in range(2, 7)]
    day = day_of(*every(3600, 1), *others)
    assert day.all_missing == ("traffic: no counters for 120.0 hours of nodes: h2, h3, h4 and 2 others",)
    down = [entry(START - HOUR, f"h{number}", host(down=True)) for number in range(2, 7)]
    assert day_of(*every(3600, 1), *down).all_missing == ()


def test_a_gap_of_the_ledger_is_none_of_the_counters() -> None:
    facts = (entry(START - HOUR, "h1", host()), entry(START - HOUR, "team-robotics", SpaceFact("robotics")))
    known = read([
        Segment("lab", START, START, 0, True, (*facts, reading(START, 0))),
        Segment("lab", START, NOON, START, False, (reading(NOON, 1000),)),
        Segment("lab", NOON + HOUR, NOON + HOUR, NOON, True, (*facts, reading(NOON + HOUR, 3000))),
        Segment("lab", NOON + HOUR, END + HOUR, NOON + HOUR, False, (reading(END + 60, 4000),)),
    ])  # fmt: skip
    day = days.make("lab", DAY, known, MADE)
    assert total(day)["robotics", *OUT] == pytest.approx(4000, abs=2)
    assert (day.complete, day.document["traffic"]["complete"]) == (False, True)


def test_bytes_of_pods_that_a_node_does_not_know_are_nobodys() -> None:
    unknown = ("", "in", "site")
    day = day_of(
        Entry(START, Subject.COUNTERS, "h1", counters((*unknown, 0))),
        Entry(END, Subject.COUNTERS, "h1", counters((*unknown, 4800))),
    )
    assert total(day) == {("", *unknown): 4800}


def test_a_namespace_that_changes_its_team_has_bytes_for_each_by_time() -> None:
    day = day_of(entry(NOON + 900, "team-robotics", SpaceFact("vision")), *every(3600, 4))
    assert total(day) == {("robotics", *OUT): 4 * (12 * HOUR + 900), ("vision", *OUT): 4 * (12 * HOUR - 900)}


def test_losses_that_nodes_noticed_are_added_up() -> None:
    day = day_of(reading(START, 0), reading(NOON, 10, resets=1), reading(END, 20, resets=3))
    assert day.notices[-1] == "nodes' kernels lost their counters 3 times, for at most some seconds each"
    assert day.document["traffic"]["complete"]


def test_of_a_day_that_has_not_ended_the_last_hour_may_come_later() -> None:
    facts = (entry(START - HOUR, "h1", host()), *every(1800, 1, end=NOON - 1000))
    known = history(*facts, end=NOON)
    assert days.make("lab", DAY, known, MADE, is_running=True).all_missing == ()
    late = history(*facts, end=NOON + 2 * HOUR)
    assert days.make("lab", DAY, late, MADE, is_running=True).all_missing


def test_a_repeated_or_older_reading_changes_nothing() -> None:
    once = day_of(*every(3600, 5))
    assert total(day_of(*[each for one in every(3600, 5) for each in (one, one)])) == total(once)
    traffic = Traffic()
    for at, count in ((100, 10), (200, 30), (150, 5), (300, 40)):
        traffic.add("h1", at, counters((*OUT, count)))
    assert sum(map(sum, traffic.amounts.values())) == 30
    assert traffic.again == []


def test_counters_are_read_as_they_were_written() -> None:
    segment = Segment("lab", START, START + HOUR, START, False, (reading(START + 5, 2**50, life="x", resets=2),))
    assert journal.read(journal.write(segment), segment.key) == segment


FLOWS = [(name, way, "pod") for name in ("a", "b") for way in ("out", "in")]
steps = st.lists(
    st.tuples(st.integers(1, 5000), st.booleans(), st.lists(st.integers(0, 10**9), min_size=4, max_size=4)), min_size=1
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps, steps)
def test_random_lives_of_counters_lose_only_what_was_counted_before_a_new_beginning(one: Any, other: Any) -> None:
    traffic, expected = Traffic(), Counter[tuple[str, str, str]]()
    for node, lives_ in (("h1", one), ("h2", other)):
        at, life, values = START, 0, dict.fromkeys(FLOWS, 0)
        traffic.add(node, at, counters(life="0"))
        for seconds, begins_again, grown in lives_:
            at, life = at + seconds, life + begins_again
            values = {
                flow: (0 if begins_again else values[flow]) + more for flow, more in zip(FLOWS, grown, strict=True)
            }
            expected.update(dict(zip(FLOWS, grown, strict=True)))
            traffic.add(node, at, counters(*((*flow, count) for flow, count in values.items()), life=str(life)))
        again_s = sum(each.end - each.start for each in traffic.again if each.node == node)
        assert traffic.covered_s(node, START, at) + again_s == at - START
    sums = Counter[tuple[str, str, str]]()
    for (_, namespace), amounts in traffic.amounts.items():
        sums.update({(namespace, *way): amount for way, amount in zip(WAYS, amounts, strict=True)})
    assert +sums == +expected


def said(*counts: dict[str, Any], **more: Any) -> str:
    return json.dumps({"counters": list(counts), "resets": 1, **more})


COUNT = {"namespace": "a", "direction": "out", "class": "pod", "bytes": 5, "packets": 1}


def test_what_menagerie_traffic_shows_is_read_also_without_a_time_and_a_life() -> None:
    unknown = {**COUNT, "namespace": None, "bytes": 7}
    fact = counters(("", "out", "pod", 7), ("a", "out", "pod", 5), life="", resets=1)
    assert published.read(said(COUNT, unknown)) == (None, fact)
    assert published.read(said(COUNT, unknown, at=START + 0.7, life="x")) == (START, fact._replace(life="x"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        said({**COUNT, "bytes": -1}),
        said({**COUNT, "bytes": 2**70}),
        said({**COUNT, "bytes": "5"}),
        said({**COUNT, "bytes": True}),
        said({**COUNT, "class": "moon"}),
        said({**COUNT, "direction": "up"}),
        said({**COUNT, "namespace": "n" * 64}),
        said(COUNT, COUNT),
        said(COUNT, at="noon"),
        said(COUNT, at=float("inf")),
        said(*[{**COUNT, "namespace": str(number)} for number in range(501)]),
    ],
)
def test_what_is_no_document_of_counters_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="annotation menagerie.dev/traffic has"):
        published.read(text)
