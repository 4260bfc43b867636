"""What goes wrong in a day: a change of team at noon, a dead node, gaps, late data, missing segments, broken GPUs, prices."""

from __future__ import annotations

from collections import Counter

from controllers.metering import day as days
from controllers.metering import journal
from controllers.metering.day import Made
from controllers.metering.facts import Entry, PriceFact, Room, SpaceFact, Subject, Use, VolumeFact
from controllers.metering.history import History, read
from controllers.metering.journal import DAY_S, Segment
from controllers.metering.ledger import FIELDS, MICRO, Ledger, count
from tests.metering.lives import DAY, HOUR, START, entry, history, host, pod

END = START + DAY_S
NOON = START + 12 * HOUR
MADE = Made(END + HOUR, 2, "0")


def gpu_hours(ledger: Ledger) -> Counter[tuple[str, str, str]]:
    """Return (team, namespace, use) -> GPU hours, without zeros."""
    sums: Counter[tuple[str, str, str]] = Counter()
    for key, amounts in ledger.parts.items():
        sums[key.team, key.namespace, key.use.value] += amounts[FIELDS.index("gpus")]
    return Counter({key: amount // HOUR for key, amount in sums.items() if amount})


def counted(known: History) -> Counter[tuple[str, str, str]]:
    return gpu_hours(count(known, START, END))


def test_the_beginning_of_the_day_in_these_tests_is_that_of_the_product() -> None:
    assert days.bounds(DAY) == (START, END)


def test_a_person_who_changes_team_at_noon_uses_for_each_team_half_a_day() -> None:
    known = history(
        entry(START, "h1", host()),
        entry(START, "user-ana", SpaceFact("", "ana", ("robotics",))),
        entry(NOON, "user-ana", SpaceFact("", "ana", ("vision",))),
        entry(START, "u1", pod("h1", namespace="user-ana")),
    )
    assert counted(known) == {("robotics", "user-ana", "used"): 96, ("vision", "user-ana", "used"): 96}


def test_a_person_of_two_teams_uses_for_the_team_whose_host_it_is_and_otherwise_for_none() -> None:
    space = SpaceFact("", "ana", ("robotics", "vision"))
    on_a_team = history(
        entry(START, "h1", host("vision")),
        entry(START, "user-ana", space),
        entry(START, "u1", pod("h1", namespace="user-ana")),
    )
    shared = history(
        entry(START, "h1", host()), entry(START, "user-ana", space), entry(START, "u1", pod("h1", namespace="user-ana"))
    )
    assert counted(on_a_team) == {("vision", "user-ana", "used"): 192}
    assert counted(shared) == {("", "user-ana", "used"): 192}


def test_a_host_that_changes_team_at_noon_is_held_idle_for_each() -> None:
    known = history(entry(START, "h1", host("robotics")), entry(NOON, "h1", host("vision")))
    assert counted(known) == {("robotics", "", "held idle"): 96, ("vision", "", "held idle"): 96}


def test_a_node_that_dies_is_broken_and_its_pods_use_nothing_any_more() -> None:
    known = history(
        entry(START, "h1", host()),
        entry(START, "team-robotics", SpaceFact("robotics")),
        entry(START, "u1", pod("h1")),
        entry(NOON, "h1", host(idle=Use.BROKEN, down=True)),
        entry(NOON + HOUR, "u1", None, Subject.POD),
    )
    assert counted(known) == {("robotics", "team-robotics", "used"): 96, ("", "", "broken"): 96}


def test_a_pod_whose_node_is_gone_is_not_counted_and_is_named() -> None:
    known = history(
        entry(START, "h1", host()),
        entry(START, "u1", pod("h1")),
        entry(NOON, "h1", None, Subject.HOST),
        entry(START, "u2", pod("never")),
    )
    ledger = count(known, START, END)
    assert gpu_hours(ledger) == {("", "team-robotics", "used"): 96}
    assert ledger.homeless_s == 36 * HOUR
    day = days.make("lab", DAY, known, MADE)
    assert day.complete
    assert "36.0 hours of pods are on nodes that do not exist; they are not counted" in day.document["notices"]


def test_unhealthy_gpus_are_broken_and_not_free() -> None:
    known = history(entry(START, "h1", host(bad=2)), entry(START, "u1", pod("h1", 4)))
    assert counted(known) == {("", "team-robotics", "used"): 96, ("", "", "broken"): 48, ("", "", "free"): 48}


def test_a_gap_counts_only_what_objects_prove_and_the_day_is_incomplete_with_the_times() -> None:
    facts = (
        entry(START, "h1", host()),
        entry(START, "h2", host()),
        entry(START, "team-robotics", SpaceFact("robotics")),
        entry(START, "u1", pod("h1")),
    )
    known = read([
        Segment("lab", START, START, 0, True, facts),
        Segment("lab", START, NOON, START, False, ()),
        Segment("lab", NOON + HOUR, NOON + HOUR, NOON, True, facts),
        Segment("lab", NOON + HOUR, END + HOUR, NOON + HOUR, False, ()),
    ])  # fmt: skip
    ledger = count(known, START, END)
    assert gpu_hours(ledger) == {("robotics", "team-robotics", "used"): 192, ("", "", "free"): 184}
    assert ledger.missing[FIELDS.index("gpus")] == 8 * HOUR
    day = days.make("lab", DAY, known, MADE)
    assert not day.complete
    assert day.missing == (
        "12:00:00 to 13:00:00: nobody watched the cluster",
        "4.16% of the memory hours are not counted; at most 0.1% may be missing",
    )


def test_a_short_gap_is_within_the_tolerance() -> None:
    facts = (entry(START, "h1", host()),)
    known = read([
        Segment("lab", START, START, 0, True, facts),
        Segment("lab", START, NOON, START, False, ()),
        Segment("lab", NOON + 60, NOON + 60, NOON, True, facts),
        Segment("lab", NOON + 60, END + HOUR, NOON + 60, False, ()),
    ])  # fmt: skip
    day = days.make("lab", DAY, known, MADE)
    assert day.complete
    assert day.document["not_counted"]["gpus"] == 8 * 60
    assert day.document["capacity"]["gpus"] == day.document["counted"]["gpus"] + 8 * 60


def test_what_vanished_in_a_gap_ends_where_it_was_certainly_there() -> None:
    facts = (entry(START, "h1", host()), entry(START, "u1", pod("h1")))
    known = read([
        Segment("lab", START, START, 0, True, facts),
        Segment("lab", START, NOON, START, False, ()),
        Segment("lab", NOON + HOUR, NOON + HOUR, NOON, True, facts[:1]),
        Segment("lab", NOON + HOUR, END + HOUR, NOON + HOUR, False, ()),
    ])  # fmt: skip
    ledger = count(known, START, END)
    assert gpu_hours(ledger) == {("", "team-robotics", "used"): 96, ("", "", "free"): 88}


def test_a_missing_segment_is_a_gap_until_everything_is_said_again() -> None:
    facts = (entry(START, "h1", host()),)
    segments = [
        Segment("lab", START, START, 0, True, facts),
        Segment("lab", START, NOON, START, False, ()),
        Segment("lab", NOON, NOON + 60, NOON, False, (entry(NOON, "u1", pod("h1")),)),
        Segment("lab", NOON + 60, NOON + 120, NOON + 60, False, ()),
        Segment("lab", NOON + 120, NOON + HOUR, NOON + 120, True, (*facts, entry(NOON, "u1", pod("h1")))),
        Segment("lab", NOON + HOUR, END + HOUR, NOON + HOUR, False, ()),
    ]
    assert not read(segments).gaps
    known = read([*segments[:2], *segments[3:]])
    assert [(gap.start - NOON, gap.end - NOON, gap.why) for gap in known.gaps] == [
        (0, HOUR, "a part of the journal is missing")
    ]
    assert counted(known) == {("", "team-robotics", "used"): 96, ("", "", "free"): 96}


def test_late_data_replaces_what_was_known_from_then_on() -> None:
    facts = (entry(START, "h1", host()), entry(START, "u1", pod("h1")))
    ended = entry(NOON, "u1", None, Subject.POD)
    segments = [
        Segment("lab", START, START, 0, True, facts),
        Segment("lab", START, END + HOUR, START, False, ()),
        Segment("lab", END + HOUR, END + 2 * HOUR, END + HOUR, False, (ended,)),
    ]
    first, again = (days.make("lab", DAY, read(segments[:count_]), MADE, count_ - 1) for count_ in (2, 3))
    assert gpu_hours(count(read(segments[:2]), START, END)) == {("", "team-robotics", "used"): 192}
    assert gpu_hours(count(read(segments), START, END)) == {("", "team-robotics", "used"): 96, ("", "", "free"): 96}
    assert not days.same(first, again)
    assert days.same(first, days.make("lab", DAY, read(segments[:2]), Made(1, 1, "1"), 7))


def test_a_day_before_the_ledger_began_is_missing_but_for_what_objects_prove() -> None:
    known = history(entry(START - DAY_S, "h1", host()), entry(NOON - HOUR, "u1", pod("h1")), start=NOON)
    day = days.make("lab", DAY, known, MADE)
    assert day.missing[0] == "00:00:00 to 12:00:00: the ledger had not begun"
    assert counted(known) == {("", "team-robotics", "used"): 104}


def test_a_day_after_the_journal_ends_is_missing() -> None:
    known = history(entry(START, "h1", host()), end=NOON)
    day = days.make("lab", DAY, known, MADE)
    assert day.missing[0] == "12:00:00 to 24:00: the journal ends there"


def test_prices_apply_from_when_they_are_known_and_an_unknown_one_is_said() -> None:
    priced = history(
        entry(START, "h1", host()),
        entry(START, "gpu", PriceFact(10 * MICRO, "spec")),
        entry(NOON, "gpu", PriceFact(20 * MICRO, "spec")),
    )
    day = days.make("lab", DAY, priced, MADE)
    assert sum(amounts["cost_micro"] for _, amounts in day.rows()) == (12 * 10 + 12 * 20) * MICRO
    assert day.document["without_price"] == []
    partly = days.make(
        "lab", DAY, history(entry(START, "h1", host()), entry(NOON, "gpu", PriceFact(20 * MICRO, "spec"))), MADE
    )
    assert sum(amounts["cost_micro"] for _, amounts in partly.rows()) == 12 * 20 * MICRO
    assert sum(amounts["unpriced_us"] for _, amounts in partly.rows()) == 12 * HOUR * MICRO
    assert "pool gpu has no price at times" in partly.document["notices"]
    never = days.make("lab", DAY, history(entry(START, "h1", host()), entry(START, "gpu", PriceFact(None))), MADE)
    assert never.document["notices"] == ["pool gpu has no price"]
    assert never.complete


def test_shares_of_a_host_that_do_not_divide_add_up_to_the_host() -> None:
    known = history(
        entry(START, "h1", host()._replace(room=Room(3, 1000, 1000))),
        *(entry(START, f"u{n}", pod("h1", 1, namespace=f"n{n}", cpu=1, memory=1)) for n in range(3)),
        entry(START, "gpu", PriceFact(1, "spec")),
    )
    ledger = count(known, START, END)
    assert ledger.sums().host_us == DAY_S * MICRO == ledger.capacity[0]


def test_volumes_are_used_by_the_namespace_of_their_claim_and_free_without_one() -> None:
    known = history(
        entry(START, "team-robotics", SpaceFact("robotics")),
        entry(START, "pv1", VolumeFact("team-robotics", 1024)),
        entry(NOON, "pv1", VolumeFact("", 1024)),
    )
    ledger = count(known, START, END)
    at = FIELDS.index("storage")
    sums = Counter[tuple[str, Use]]()
    for key, amounts in ledger.parts.items():
        sums[key.team, key.use] += amounts[at]
    assert sums == {("robotics", Use.USED): 1024 * 12 * HOUR, ("", Use.FREE): 1024 * 12 * HOUR}
    assert ledger.capacity[at] == 1024 * DAY_S


def test_a_segment_and_a_day_are_read_as_they_were_written_and_are_the_same_bytes_again() -> None:
    entries = (
        entry(START, "h1", host("robotics", bad=1)),
        entry(START, "u1", pod("h1")),
        entry(START, "user-ana", SpaceFact("", "ana", ("robotics", "vision"))),
        entry(START, "pv1", VolumeFact("user-ana", 5)),
        entry(START, "gpu", PriceFact(None)),
        Entry(NOON, Subject.POD, "u1", None),
    )
    segment = Segment("lab", START, START, 0, True, entries, {"Pod": "17"})
    data = journal.write(segment)
    assert journal.read(data, segment.key) == segment
    assert (journal.end_of(segment.key), journal.is_whole(segment.key)) == (START, True)
    assert segment.key == f"ledger/journal/2026-11-27/0{START}-whole.json"
    known = [read([journal.read(data, ""), Segment("lab", START, END + HOUR, START, False, ())]) for _ in range(2)]
    one, other = (days.make("lab", DAY, each, MADE).to_bytes() for each in known)
    assert one == other == days.read(one, "key").to_bytes()


def test_days_are_due_an_hour_after_their_end_and_again_a_day_later() -> None:
    key = days.key_of(DAY, 1)
    assert list(days.due(END + HOUR - 1, (), START)) == []
    assert list(days.due(END + HOUR, (), START)) == [(DAY, END + HOUR)]
    assert list(days.due(END + HOUR, (key,), START)) == []
    assert [each for each in days.due(END + DAY_S + HOUR, (key,), START) if each[0] == DAY] == [
        (DAY, END + DAY_S + HOUR)
    ]
    assert next(each[0] for each in days.due(END + 9 * DAY_S, (key,), START)) != DAY
    assert days.newest([key, days.key_of(DAY, 2), days.key_of(DAY, 3, "parquet")]) == {"2026-11-27": 2}
