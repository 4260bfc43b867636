"""`bill` from the command line: its days, its forms, the fleet, and what it says of days that are missing or differ."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from obstore.store import MemoryStore

from cli.actions import bill as action
from cli.verbs import bill as verb
from clients.access import NotBuiltError
from cluster.errors import FailedError
from controllers.bookkeeping.store import LedgerStore
from controllers.metering import day as days
from controllers.metering.day import Made
from controllers.metering.facts import PriceFact, SpaceFact, Subject
from controllers.metering.history import read
from controllers.metering.journal import DAY_S, Segment
from operations.record.store import RecordStore
from tests.cli.terminal import Menagerie
from tests.metering.lives import DAY, HOUR, START, entry, host, pod

FACTS = (
    entry(START - 3 * DAY_S, "h1", host()),
    entry(START - 3 * DAY_S, "h2", host("vision")),
    entry(START - 3 * DAY_S, "h3", host(pool="old")),
    entry(START - 3 * DAY_S, "team-robotics", SpaceFact("robotics")),
    entry(START - 3 * DAY_S, "gpu", PriceFact(10_000_000, "spec")),
    entry(START - 3 * DAY_S, "u1", pod("h1", 6)),
)


def ledger(*days_: date, name: str = "lab", incomplete: bool = False) -> LedgerStore:
    """Return a ledger with these days and their journal."""
    store = LedgerStore(RecordStore(MemoryStore(), f"bucket of {name}", shared=True))
    begin = START - 3 * DAY_S
    segments = [Segment(name, begin, begin, 0, True, FACTS)]
    while segments[-1].end < START + 3 * DAY_S:
        before = segments[-1].end
        missed = 6 * HOUR if incomplete and before == START else 0
        end = before + 6 * HOUR
        segments.append(Segment(name, before + missed, end, before, bool(missed), FACTS if missed else ()))
    for segment in segments:
        store.append(segment)
    for day in days_:
        store.keep(store.rebuild(name, day, days.bounds(day)[1] + 6 * HOUR), b"table")
    return store


@pytest.fixture
def billed(menagerie: Menagerie, monkeypatch: pytest.MonkeyPatch) -> Callable[..., object]:
    """billed(ledgers by cluster)(words): run `bill` two days after the day of these tests."""

    def of(**ledgers: LedgerStore | Exception | None) -> Menagerie:
        monkeypatch.setattr(verb, "_today", lambda _: DAY + timedelta(days=2))
        monkeypatch.setattr(verb, "checked", lambda name: SimpleNamespace(name=name))
        monkeypatch.setattr(action, "checked", lambda name: SimpleNamespace(name=name))
        monkeypatch.setattr(action, "clusters", lambda _: list(ledgers))

        def access_to(cluster: SimpleNamespace) -> str:
            if isinstance(error := ledgers[cluster.name], Exception):
                raise error
            return str(cluster.name)

        monkeypatch.setattr(action, "stack", SimpleNamespace(access_to=access_to))
        monkeypatch.setattr(action, "ledger_of", lambda name: ledgers[name])
        return lambda *words: menagerie("bill", *words)

    return of


def test_a_day_shows_teams_what_nobody_used_and_the_largest_wastes(billed: Callable[..., Menagerie]) -> None:
    ran = billed(lab=ledger(DAY))("lab", "--day", "2026-11-27")
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    assert lines[0] == "2026-11-27, UTC: lab"
    robotics = next(line.split() for line in lines if line.startswith("robotics"))
    assert robotics[:2] == ["robotics", "144.0"]
    assert "idle: 75.0% of what was in the ledger" in ran.out
    assert [line.strip() for line in lines if "waste" in line] == [
        "waste 1: held idle for vision in pool gpu of lab: 192.0 GPU hours, 240.00 $",
        "waste 2: free in pool gpu of lab: 48.0 GPU hours, 60.00 $",
        "waste 3: free in pool old of lab: 192.0 GPU hours",
    ]
    assert "without a price: lab/old" in ran.err


def test_the_default_is_yesterday_and_a_missing_day_is_said(billed: Callable[..., Menagerie]) -> None:
    ran = billed(lab=ledger(DAY))("lab")
    assert ran.code == 1
    assert ran.out.startswith("2026-11-28, UTC: lab")
    assert "incomplete: lab: 2026-11-28 has no object in the ledger" in ran.err


def test_an_incomplete_day_is_said_with_what_is_missing(billed: Callable[..., Menagerie]) -> None:
    ran = billed(lab=ledger(DAY, incomplete=True))("lab", "--day", "2026-11-27")
    assert ran.code == 1
    assert "incomplete: lab, 2026-11-27: 00:00:00 to 06:00:00: nobody watched the cluster" in ran.err


def test_a_fleets_bill_adds_clusters_up_and_names_those_that_do_not_answer(billed: Callable[..., Menagerie]) -> None:
    fleet = {
        "lab": ledger(DAY),
        "horus": ledger(DAY, name="horus"),
        "ibis": NotBuiltError("ibis has not been built"),
        "jaguar": FailedError("no answer", code="cloud-call"),
        "koala": None,
    }
    ran = billed(**fleet)("--day", "2026-11-27", "--json")
    assert ran.code == 1
    assert ran.json["clusters"] == ["lab", "horus"]
    assert ran.json["troubles"] == ["jaguar: no answer", "koala: it has no bucket yet; run: ./menagerie up koala"]
    assert ran.json["total"]["gpu_hours"] == 2 * 3 * 8 * 24
    assert ran.json["total"]["dollars"] == 2 * 2 * 24 * 10
    assert ran.json["total"]["unpriced_hours"] == 2 * 24
    lone = billed(lab=fleet["lab"])("lab", "--day", "2026-11-27", "--json")
    assert lone.code == 0
    assert sum(line["gpu_hours"] for line in lone.json["lines"]) == lone.json["total"]["gpu_hours"] == 3 * 8 * 24


def test_a_teams_bill_has_its_namespaces_and_what_is_held_for_it(billed: Callable[..., Menagerie]) -> None:
    bill = billed(lab=ledger(DAY))
    robotics = bill("lab", "--day", "2026-11-27", "--team", "Robotics", "--json").json
    assert [(line["namespace"], line["gpu_hours"], line["dollars"]) for line in robotics["lines"]] == [
        ("team-robotics", 144.0, 180.0)
    ]
    vision = bill("lab", "--day", "2026-11-27", "--team", "vision", "--json").json
    assert [(line["use"], line["gpu_hours"]) for line in vision["lines"]] == [("held idle", 192.0)]
    assert "(held idle)" in bill("lab", "--day", "2026-11-27", "--team", "vision").out


def test_csv_has_a_line_for_each_part_and_formulas_are_text(billed: Callable[..., Menagerie]) -> None:
    ran = billed(lab=ledger(DAY))("lab", "--day", "2026-11-27", "--csv")
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    assert ran.code == 0
    assert {row["use"] for row in rows} == {"used", "held idle", "free"}
    assert sum(float(row["gpu_hours"]) for row in rows) == 3 * 8 * 24
    from cli.views.bill.table import _plain

    assert [_plain(word) for word in ("=cmd", "@x", "robotics", "")] == ["'=cmd", "'@x", "robotics", ""]


def test_a_page_is_well_formed_and_loads_nothing(billed: Callable[..., Menagerie], tmp_path: Path) -> None:
    page = tmp_path / "bill.html"
    ran = billed(lab=ledger(DAY))("lab", "--day", "2026-11-27", "--html", str(page))
    assert (ran.code, ran.out) == (0, ""), ran.err
    text = page.read_text()
    assert "http-equiv" not in text
    assert text.replace("http://www.w3.org/2000/svg", "").count("http") == 0
    assert "<script" not in text
    drawing = text[text.index("<svg xmlns") : text.index("</svg>") + len("</svg>")]
    parts = [rect for rect in ET.fromstring(drawing) if rect.tag.endswith("rect")]
    assert sum(int(rect.attrib["width"]) for rect in parts) == 960
    assert "held idle for vision in pool gpu of lab: 192.0 GPU hours, 240.00 $" in text


def test_names_that_people_write_are_escaped_in_a_page() -> None:
    from cli.views.bill.page import to_html
    from controllers.metering.bill import Ledgers, bill
    from controllers.metering.spans import span

    evil = (*FACTS[:-1], entry(START - DAY_S, "u1", pod("h1", 6, namespace="<script>")))
    known = read([
        Segment("lab", START - DAY_S, START - DAY_S, 0, True, evil),
        Segment("lab", START - DAY_S, START + 2 * DAY_S, START - DAY_S, False, ()),
    ])  # fmt: skip
    day = days.make("<b>lab", DAY, known, Made(START, 1, "0"))
    from datetime import UTC

    made = bill(span(DAY, DAY, UTC, "UTC"), [Ledgers("<b>lab", {DAY: day})])
    assert "<b>lab" not in to_html(made)
    assert "<script>" not in to_html(made)


def test_a_day_of_another_zone_has_the_hours_of_two_days_of_utc(billed: Callable[..., Menagerie]) -> None:
    bill = billed(lab=ledger(DAY - timedelta(days=1), DAY))
    ran = bill("lab", "--day", "2026-11-27", "--zone", "Europe/Berlin", "--json")
    assert (ran.code, ran.json["hours"], ran.json["total"]["gpu_hours"]) == (0, 24, 3 * 8 * 24)
    alone = billed(lab=ledger(DAY))("lab", "--day", "2026-11-27", "--zone", "Europe/Berlin", "--json")
    assert (alone.code, alone.json["total"]["gpu_hours"]) == (1, 3 * 8 * 23)


def test_several_days_are_added_up_and_absent_ones_are_ranges(billed: Callable[..., Menagerie]) -> None:
    ran = billed(lab=ledger(DAY))("lab", "--month", "2026-11", "--json")
    assert ran.json["days"] == "2026-11-01 to 2026-11-28"
    assert ran.json["troubles"] == ["lab: 2026-11-01 to 2026-11-26, 2026-11-28 have no object in the ledger"]
    assert ran.json["total"]["gpu_hours"] == 3 * 8 * 24


def test_the_day_that_has_not_ended_is_shown_with_how_far_it_was_counted(billed: Callable[..., Menagerie]) -> None:
    store = ledger(DAY)
    bill = billed(lab=store)
    absent = bill("lab", "--today")
    assert (absent.code, "2026-11-29 has no object" in absent.err) == (1, True)
    today = DAY + timedelta(days=2)
    for hours in (6, 12):
        store.keep_running(store.rebuild("lab", today, START + 2 * DAY_S + hours * HOUR, is_running=True))
    ran = bill("lab", "--today")
    assert ran.code == 0, ran.err
    assert "lab, 2026-11-29 is not closed yet: counted from 00:00:00 to 12:00:00 UTC" in ran.out
    shown = bill("lab", "--today", "--json").json
    assert (shown["complete"], shown["total"]["gpu_hours"], len(shown["running"])) == (True, 3 * 8 * 12, 1)
    assert bill("lab", "--today", "--verify").out == "lab 2026-11-29: the same bytes\n"
    rows = list(csv.DictReader(io.StringIO(bill("lab", "--today", "--csv").out)))
    assert {row["complete"] for row in rows} == {"running"}


def test_a_day_that_is_over_is_never_taken_from_a_count_before_its_end(billed: Callable[..., Menagerie]) -> None:
    store = ledger()
    store.keep_running(store.rebuild("lab", DAY, START + 6 * HOUR, is_running=True))
    ran = billed(lab=store)("lab", "--day", "2026-11-27")
    assert (ran.code, "2026-11-27 has no object" in ran.err) == (1, True)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--day", "27.11."), "is not a date; write it as 2026-11-27"),
        (("--day", "2026-11-29"), "2026-11-29 is not over yet; the last day with a bill is 2026-11-28"),
        (("--month", "2027-01"), "2027-01-31 is not over yet"),
        (("--month", "11"), "is not a month; write it as 2026-11"),
        (("--to", "2026-11-27"), "--to needs --from"),
        (("--from", "2026-11-28", "--to", "2026-11-27"), "2026-11-27 is before 2026-11-28"),
        (("--day", "2026-11-27", "--month", "2026-11"), "exclude each other"),
        (("--today", "--from", "2026-11-27"), "exclude each other"),
        (("--zone", "Mars/Olympus"), "'Mars/Olympus' is not a time zone of this machine"),
        (("--zone", "Asia/Kolkata"), "days of Asia/Kolkata begin within an hour of UTC"),
        (("--csv", "--json"), "three forms of one bill"),
    ],
)
def test_wrong_options_are_refused(billed: Callable[..., Menagerie], words: tuple[str, ...], says: str) -> None:
    ran = billed(lab=ledger())("lab", *words)
    assert ran.code == 2
    assert says in " ".join((ran.err + ran.out).split())


def test_verify_counts_again_and_notices_a_day_that_differs(billed: Callable[..., Menagerie]) -> None:
    store = ledger(DAY)
    ran = billed(lab=store)("lab", "--day", "2026-11-27", "--verify")
    assert (ran.code, ran.out) == (0, "lab 2026-11-27: the same bytes\n")
    kept = store.day("2026-11-27", 1)
    forged = {**kept.document, "revision": 2, "rows": kept.document["rows"][1:]}
    store.keep(days.Day(forged), b"another")
    ran = billed(lab=store)("lab", "--day", "2026-11-27", "--verify")
    assert (ran.code, ran.out) == (1, "lab 2026-11-27: DIFFERENT bytes\n")
    ran = billed(lab=store)("lab", "--verify", "--json")
    assert (ran.code, json.loads(ran.out)["days"]) == (1, [{"cluster": "lab", "day": "2026-11-28", "same": None}])


def test_a_spoiled_object_is_named(billed: Callable[..., Menagerie]) -> None:
    store = ledger()
    store._records.create(days.key_of(DAY, 1), b'{"version": 1}')
    ran = billed(lab=store)("lab", "--day", "2026-11-27")
    assert ran.code == 1
    assert "bucket of lab: ledger/days/2026-11-27.1.json is not a day of a ledger" in ran.err
    assert Subject.HOST == "host"


def test_the_key_of_the_ledgers_bucket_is_a_secret_that_the_spec_names(
    menagerie: Menagerie, spec: Callable[..., Path], tmp_path: Path
) -> None:
    path = spec()
    tenancy = "tenancy: {directory: {file: people.yaml}}\nmetering: {key: {secret: ledger}}\n"
    path.write_text(f"{path.read_text()}{tenancy}")
    (tmp_path / "people.yaml").write_text("people: {ana: {}}\n")
    ran = menagerie("secret", str(path), "ledger", "--dry-run")
    assert ran.code == 0, ran.err
    assert "none is stored yet; `controllers apply` uses it" in ran.out
