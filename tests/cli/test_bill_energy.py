"""Energy and traffic in bills: an estimate is named one in every form, and what nobody knows is said."""

from __future__ import annotations

import csv
import io
from datetime import UTC

import pytest

from cli.views.bill import text
from cli.views.bill.page import to_html
from cli.views.bill.table import to_csv
from controllers.metering import day as days
from controllers.metering.bill import Bill, Ledgers, bill
from controllers.metering.day import Made
from controllers.metering.facts import EnergyFact, EnergySource, Entry, PowerFact, SpaceFact, Subject
from controllers.metering.journal import DAY_S
from controllers.metering.spans import span
from tests.metering.lives import DAY, HOUR, START, entry, history, host, pod
from tests.metering.test_traffic import counters

END = START + DAY_S
HOSTS = (
    entry(START - HOUR, "h1", host()),
    entry(START - HOUR, "team-robotics", SpaceFact("robotics")),
    entry(START - HOUR, "u1", pod("h1", 6)),
)
DECLARED = entry(START - HOUR, "gpu", EnergyFact(EnergySource.DECLARED, 1000, 5000, 200_000))
REGION = (entry(START - HOUR, "h2", host(pool="region")), entry(START - HOUR, "region", EnergyFact(EnergySource.CLOUD)))


def billed(*entries: Entry, team: str = "") -> Bill:
    day = days.make("lab", DAY, history(*HOSTS, *entries), Made(END, 1, "0"))
    return bill(span(DAY, DAY, UTC, "UTC"), [Ledgers("lab", {DAY: day})], team)


def shown(made: Bill, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    text.show(made)
    out, err = capsys.readouterr()
    return out, " ".join(err.split())


def row(out: str, name: str) -> list[str]:
    return next(line.split() for line in out.splitlines() if line.startswith(name))


def test_an_estimate_has_a_mark_in_the_table_and_is_apart_in_json_and_csv(capsys: pytest.CaptureFixture[str]) -> None:
    made = billed(DECLARED)
    out, _ = shown(made, capsys)
    assert "~90.0" in row(out, "robotics")
    assert "energy: 96.0 kWh, 96.0 of it an estimate; 19.20 $ at price_kwh, apart from the other dollars" in out
    total = made.to_json()["total"]
    assert (total["kwh"], total["estimated_kwh"], total["energy_dollars"], total["dollars"]) == (96.0, 96.0, 19.2, 0)
    rows = list(csv.DictReader(io.StringIO(to_csv(made))))
    assert sum(float(each["estimated_kwh"]) for each in rows) == 96.0


def test_what_bmcs_said_has_no_mark(capsys: pytest.CaptureFixture[str]) -> None:
    power = [Entry(at, Subject.POWER, "h1", PowerFact(4000)) for at in range(START - HOUR, END, 600)]
    out, _ = shown(billed(entry(START - HOUR, "gpu", EnergyFact(EnergySource.BMC)), *power), capsys)
    assert "72.0" in row(out, "robotics")
    assert "energy: 96.0 kWh, all of it read from BMCs" in out


def test_hosts_whose_energy_nobody_knows_are_marked_and_their_pools_named(capsys: pytest.CaptureFixture[str]) -> None:
    made = billed(DECLARED, *REGION)
    out, err = shown(made, capsys)
    assert "~6.0+?" in row(out, "free")
    assert "without energy: lab/region: it is in the region, and no cloud says what its machines draw" in err
    assert made.troubles == ()
    page = to_html(made)
    assert "Without energy: lab/region: it is in the region" in page
    assert "~6.0+?" in page
    assert made.to_json()["without_energy"] == {"lab/region": "cloud"}


def test_a_bill_without_any_energy_has_no_column_for_it(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = shown(billed(*REGION), capsys)
    assert "KWH" not in out
    assert "energy" not in out + err


def test_energy_that_is_missing_makes_the_bill_incomplete(capsys: pytest.CaptureFixture[str]) -> None:
    made = billed(entry(START - HOUR, "gpu", EnergyFact(EnergySource.BMC)))
    _, err = shown(made, capsys)
    said = "lab, 2026-11-27: energy: no reading of power for 24.0 host hours of pool gpu: h1"
    assert made.troubles == (said,)
    assert f"incomplete: {said}" in err


def counted(at: int, *counts: tuple[str, str, str, int]) -> Entry:
    return Entry(at, Subject.COUNTERS, "h1", counters(*counts))


OUT, IN, UNKNOWN = ("team-robotics", "out", "internet"), ("team-robotics", "in", "ceph"), ("", "in", "site")
TRAFFIC = (
    counted(START - HOUR, (*OUT, 0), (*IN, 0), (*UNKNOWN, 0)),
    counted(START, (*OUT, 0), (*IN, 0), (*UNKNOWN, 0)),
    counted(END, (*OUT, 5 * 10**9), (*IN, 24 * 10**9), (*UNKNOWN, 24 * 10**6)),
)


def test_traffic_has_a_row_for_each_team_and_unknown_pods_are_nobodys(capsys: pytest.CaptureFixture[str]) -> None:
    made = billed(*TRAFFIC)
    out, _ = shown(made, capsys)
    table = out[out.index("INTERNET OUT GB") :]
    assert row(table, "robotics") == ["robotics", "5.000", "24.000"]
    assert row(table, "(unknown") == ["(unknown", "pods)", "0.024"]
    page = to_html(made)
    assert '<h2 id="traffic">' in page
    assert "24.000" in page
    assert {(each["team"], each["class"], each["bytes"]) for each in made.to_json()["traffic"]} == {
        ("robotics", "internet", 5 * 10**9),
        ("robotics", "ceph", 24 * 10**9),
        ("", "site", 24 * 10**6),
    }


def test_a_teams_bill_has_the_traffic_of_its_namespaces_alone(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = shown(billed(*TRAFFIC, team="robotics"), capsys)
    table = out[out.index("INTERNET OUT GB") :]
    assert row(table, "team-robotics") == ["team-robotics", "5.000", "24.000"]
    assert "unknown" not in table


def test_a_bill_without_traffic_has_no_table_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = shown(billed(), capsys)
    assert "GB" not in out.replace("GIB", "")
