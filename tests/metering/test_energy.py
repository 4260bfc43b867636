"""Energy in the ledger: readings that hold for a while, the estimate where they lack, and what nobody knows, which is said."""

from __future__ import annotations

from collections import Counter

import pytest

from controllers.metering import day as days
from controllers.metering import journal
from controllers.metering.day import Made
from controllers.metering.energy import HOLD_S, MICRO, UJ_PER_KWH, Meter, split
from controllers.metering.facts import EnergyFact, EnergySource, Entry, PowerFact, Subject, Use
from controllers.metering.history import History, read
from controllers.metering.journal import DAY_S, Segment
from controllers.metering.ledger import FIELDS, Ledger, count
from tests.metering.lives import DAY, HOUR, START, entry, history, host, pod

END, NOON = START + DAY_S, START + 12 * HOUR
MADE = Made(END + HOUR, 2, "0")
BMC = EnergyFact(EnergySource.BMC)
DECLARED = EnergyFact(EnergySource.DECLARED, 1000, 5000, 200_000)


def readings(watts: int, start: int = START, end: int = END, every_s: int = 600, name: str = "h1") -> list[Entry]:
    return [Entry(moment, Subject.POWER, name, PowerFact(watts)) for moment in range(start, end, every_s)]


def kwh(ledger: Ledger, field: str = "energy") -> dict[tuple[str, str], float]:
    """Return (team or namespace, use) -> kWh, without zeros."""
    sums: Counter[tuple[str, str]] = Counter()
    for key, amounts in ledger.parts.items():
        sums[key.team or key.namespace, key.use.value] += amounts[FIELDS.index(field)]
    return {key: round(amount / UJ_PER_KWH, 6) for key, amount in sums.items() if amount}


def closes(known: History) -> Ledger:
    """Count the day, and check that the parts of its energy add up to it."""
    ledger, at = count(known, START, END), FIELDS.index("energy")
    assert ledger.sums().energy + ledger.missing[at] == ledger.capacity[at]
    return ledger


def test_a_hosts_measured_energy_is_split_like_its_time() -> None:
    known = history(
        entry(START, "h1", host()), entry(START, "u1", pod("h1", 2)), entry(START, "gpu", BMC), *readings(4000)
    )
    ledger = closes(known)
    assert kwh(ledger) == {("team-robotics", "used"): 24.0, ("", "free"): 72.0}
    assert kwh(ledger, "estimated") == {}
    assert ledger.sums().unmetered_us == 0
    assert days.make("lab", DAY, known, MADE).document["energy"]["complete"]


def test_a_reading_holds_until_the_next_one_and_no_longer_than_it_may() -> None:
    steps = [(START + 100, PowerFact(10)), (START + 200, PowerFact(20)), (START + 9000, PowerFact(1))]
    meter = Meter(steps, START, START + 9010)
    assert meter.between(START, START + 100) == (0, 0)
    assert meter.between(START + 150, START + 250) == (50 * 10 + 50 * 20, 100)
    assert meter.between(START + 200, START + 9000) == (HOLD_S * 20, HOLD_S)
    assert meter.between(START + 8000, START + 9010) == (10, 10)
    assert Meter([(START - 60, PowerFact(7))], START, END).between(START, END) == (7 * (HOLD_S - 60), HOLD_S - 60)


def test_without_readings_it_is_an_estimate_from_the_declared_watts_and_its_price_is_apart() -> None:
    known = history(entry(START, "h1", host()), entry(START, "u1", pod("h1", 6)), entry(START, "gpu", DECLARED))
    ledger = closes(known)
    # Three quarters at the busy watts, the rest at the idle ones.
    assert kwh(ledger) == kwh(ledger, "estimated") == {("team-robotics", "used"): 90.0, ("", "free"): 6.0}
    rows = dict(days.make("lab", DAY, known, MADE).rows())
    assert sum(amounts["energy_cost_micro"] for amounts in rows.values()) == 96 * 200_000
    assert sum(amounts["cost_micro"] for amounts in rows.values()) == 0


def test_the_estimate_fills_the_time_in_which_a_bmc_was_silent() -> None:
    fact = DECLARED._replace(source=EnergySource.BMC)
    known = history(entry(START, "h1", host()), entry(START, "gpu", fact), *readings(4000, end=NOON))
    ledger = closes(known)
    silent_s = END - (NOON - 600 + HOLD_S)
    assert kwh(ledger, "estimated") == {("", "free"): round(silent_s / 3600, 6)}
    assert kwh(ledger)["", "free"] == round(4 * (24 - silent_s / 3600) + silent_s / 3600, 6)
    assert days.make("lab", DAY, known, MADE).all_missing == ()


def test_time_without_a_reading_or_an_estimate_is_missing_and_named_with_its_hosts() -> None:
    hosts = [entry(START, f"h{number}", host()) for number in range(1, 7)]
    known = history(*hosts, entry(START, "gpu", BMC), *readings(4000, end=NOON))
    ledger = closes(known)
    lacking_s = END - (NOON - 600 + HOLD_S) + 5 * DAY_S
    assert ledger.sums().unmetered_us == lacking_s * MICRO
    day = days.make("lab", DAY, known, MADE)
    hours = f"{lacking_s / HOUR:.1f}"
    text = f"no reading of power for {hours} host hours of pool gpu: h2, h3, h4 and 3 others"
    assert (day.complete, day.document["energy"]["complete"], day.missing) == (True, False, ())
    assert day.all_missing == (f"energy: {text}",)


def test_a_short_silence_is_within_the_tolerance() -> None:
    known = history(entry(START, "h1", host()), entry(START, "gpu", BMC), *readings(4000, start=START + 80))
    day = days.make("lab", DAY, known, MADE)
    assert day.document["energy"]["complete"]
    assert sum(amounts["unmetered_us"] for _, amounts in day.rows()) == 80 * MICRO


@pytest.mark.parametrize("source", [EnergySource.CLOUD, EnergySource.NONE])
def test_a_pool_whose_energy_nobody_can_know_is_named_and_leaves_the_day_complete(source: EnergySource) -> None:
    known = history(entry(START, "h1", host()), entry(START, "gpu", EnergyFact(source)))
    day = days.make("lab", DAY, known, MADE)
    assert day.without_energy == {"gpu": source}
    assert (day.document["energy"]["complete"], day.all_missing) == (True, ())
    assert kwh(closes(known)) == {}


def test_a_dead_host_draws_power_that_is_broken_and_nobodys() -> None:
    known = history(
        entry(START, "h1", host()),
        entry(START, "u1", pod("h1")),
        entry(NOON, "h1", host(idle=Use.BROKEN, down=True)),
        entry(START, "gpu", BMC),
        *readings(2000),
    )
    assert kwh(closes(known)) == {("team-robotics", "used"): 24.0, ("", "broken"): 24.0}


def test_in_a_gap_the_energy_of_what_is_missing_is_missing_too() -> None:
    facts = (entry(START, "h1", host()), entry(START, "u1", pod("h1", 4)), entry(START, "gpu", DECLARED))
    known = read([
        Segment("lab", START, START, 0, True, facts),
        Segment("lab", START, NOON, START, False, ()),
        Segment("lab", NOON + HOUR, NOON + HOUR, NOON, True, facts),
        Segment("lab", NOON + HOUR, END + HOUR, NOON + HOUR, False, ()),
    ])  # fmt: skip
    ledger = closes(known)
    assert ledger.missing[FIELDS.index("energy")] == UJ_PER_KWH // 2
    assert kwh(ledger) == {("team-robotics", "used"): 60.0, ("", "free"): 11.5}


def test_readings_are_kept_when_they_say_the_same_and_a_repeated_one_changes_nothing() -> None:
    known = history(entry(START, "h1", host()), *readings(4000))
    assert len(known.steps[Subject.POWER]["h1"]) == DAY_S // 600
    known.add(Segment("lab", END + 26 * HOUR, END + 27 * HOUR, END + 26 * HOUR, False, tuple(readings(9000))))
    assert {fact for _, fact in known.steps[Subject.POWER]["h1"]} == {PowerFact(4000)}


def test_facts_of_energy_are_read_as_they_were_written() -> None:
    entries = (entry(START, "gpu", DECLARED), entry(START, "old", BMC), *readings(4000, end=START + 1200))
    segment = Segment("lab", START, START + HOUR, START, False, entries)
    assert journal.read(journal.write(segment), segment.key) == segment


@pytest.mark.parametrize("owns", [(1, 1, 1), (0, 7), (5, 0, 3, 11), (1,), ()])
def test_an_amount_is_split_without_a_rest(owns: tuple[int, ...]) -> None:
    shares = split(1000, owns)
    assert sum(shares) == (1000 if owns else 0)
    assert all(abs(share - 1000 * own / sum(owns)) < 1 for share, own in zip(shares, owns, strict=True))
