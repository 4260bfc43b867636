"""What the page of bills says: by month and day, cluster and team, of ledgers that are whole, missing, incomplete or being read."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, timedelta
from typing import ClassVar

import pytest

from controllers.web.billing import Period, neighbours, period, present
from controllers.web.facts import ClusterFacts, Sight
from controllers.web.guards import Admitted
from controllers.web.kept import NO_METERING, Kept, since_of
from controllers.web.parts import Part
from tests.web.bills import ABSENT, FIRST, INCOMPLETE, MONTH, TODAY, YESTERDAY, day_of, kept
from tests.web.support import NOW_S, app, ask, facts, page, read
from tests.web.test_pages import Parsed

DAY = f"bill/{YESTERDAY}/"


@pytest.fixture
def billed(lab) -> ClusterFacts:
    return facts(lab, bills=read(kept("lab")))


def plain(path: str, *clusters: ClusterFacts) -> str:
    return Parsed(page(path, *clusters)).plain


class Fixed:
    """A guard that lets everybody in with the same sight."""

    def __init__(self, sight: Sight) -> None:
        self.sight = sight

    async def check(self, asked) -> Admitted:
        return Admitted(asked.path, self.sight)


def visited(sight: Sight, path: str, *clusters: ClusterFacts):
    return ask(app(*clusters, guard=Fixed(sight)), f"/{path}")


def test_a_day_has_the_numbers_of_the_command_the_idle_share_and_the_three_largest_wastes(billed):
    text = plain(DAY, billed)
    assert "robotics 144.0 24.0 24.0 180.00 25.0%" in text
    assert "vision 24.0 24.0 24.0 192.0 270.00 37.5%" in text
    assert "Idle: 70.8% of what was in the ledger." in text
    assert "held idle for vision in pool gpu of lab: 192.0 GPU hours, 240.00 $" in text
    assert text.count(" in pool ") == 3
    assert "Every day is complete" in text


def test_a_pool_without_a_price_is_named_and_its_hours_are_counted(billed):
    text = plain(DAY, billed)
    assert "so not in the dollars, which have “+?”: lab/old." in text
    assert "free 37.5% 216.0 27.0 30.00+?" in text


def test_a_month_says_which_days_are_missing_or_incomplete_and_why(billed):
    text = plain("bill/", billed)
    assert "This bill is incomplete." in text
    assert f"lab: {ABSENT} has no object in the ledger" in text
    assert f"lab, {INCOMPLETE}: 00:00:00 to 06:00:00: nobody watched the cluster" in text


def test_the_chart_of_days_and_its_table_have_the_same_numbers(billed):
    parsed = Parsed(page("bill/", billed))
    titles = re.findall(r"<title>(\d{4}-\d\d-\d\d): ([a-z ]+) ([\d,.]+) GPU hours</title>", page("bill/", billed))
    assert len(titles) == 3 * (TODAY - FIRST).days - 3
    by_day = {day: {use: hours for on, use, hours in titles if on == day} for day, _, _ in titles}
    for day, uses in by_day.items():
        row = re.search(rf"{day} ([\d.]+) ([\d.]+) ([\d.]+) [\d.,+?]+ [\d.]+%", parsed.plain)
        assert row, day
        assert list(row.groups()) == [uses["used"], uses["held idle"], uses["free"]]


def test_the_bar_has_the_shares_of_the_table_and_no_use_is_told_by_colour_alone(billed):
    text = page(DAY, billed)
    (title,) = re.findall(r'<title id="uses-title">(.*)</title>', text)
    assert title == "used 29.2%, held idle 33.3%, free 37.5%"
    for part in title.split(", "):
        assert part in Parsed(text).plain
    widths = [int(each["width"]) for each in Parsed(text).all("rect") if each["height"] == "40"]
    assert sum(widths) == 960


def test_several_clusters_are_added_up_and_each_has_its_own_bill(lab):
    other = replace(facts(lab, bills=read(kept("horus", [day_of("horus", YESTERDAY)]))), name="horus")
    own = facts(lab, bills=read(kept("lab")))
    both = plain(DAY, own, other)
    assert "lab, horus" in both and "robotics 288.0" in both and "All clusters" in both
    assert "robotics 144.0" in plain(f"bill/{YESTERDAY}/cluster/horus/", own, other)
    assert "horus: 2027-01-01 to" in plain("bill/", own, other)


def test_a_teams_bill_has_its_namespaces_and_only_its_own(billed):
    text = plain(f"{DAY}team/vision/", billed)
    assert "user-ana (ana) 24.0" in text and "(held idle)" in text
    assert "Idle: 88.9% of what was this team's." in text
    assert "robotics" not in text


def test_who_sees_one_team_gets_its_bill_at_once_and_nothing_else(billed):
    ana = Sight(False, frozenset({"vision"}), "ana may not list nodes in the whole cluster")
    first = visited(ana, "", billed)
    assert (first.status, first.headers["location"]) == (307, "./bill/")
    mine = visited(ana, "bill/", billed)
    assert mine.status == 200
    assert "of team vision" in mine.text and "user-ana" in mine.text
    assert "robotics" not in mine.text and ">Fleet<" not in mine.text and ">Capacity<" not in mine.text
    for path in ("capacity/", "cluster/lab/", "cluster/lab/operation/id1/"):
        refused = visited(ana, path, billed)
        assert refused.status == 403
        assert "ana may not list nodes in the whole cluster" in refused.text


@pytest.mark.parametrize("prefix", ["", "cluster/lab/"])
@pytest.mark.parametrize("team", ["robotics", "koala", "vision%20", ""])
def test_another_teams_bill_is_not_there_whether_or_not_it_exists(billed, prefix, team):
    ana = Sight(False, frozenset({"vision"}), "x")
    answer = visited(ana, f"{DAY}{prefix}team/{team}/", billed)
    assert (answer.status, "robotics" in answer.text) == (404, False)


def test_who_is_of_two_teams_chooses_and_nobody_elses_is_offered(billed):
    two = Sight(False, frozenset({"vision", "koala"}), "x")
    text = visited(two, f"{DAY}team/vision/", billed).text
    assert f"bill/{YESTERDAY}/team/koala/" in text
    assert "robotics" not in text and "All teams" not in text
    assert "Bill of team koala" in visited(two, DAY, billed).text


def test_who_sees_nothing_gets_no_bill_of_everybody(billed):
    assert visited(Sight(False), "bill/", billed).status == 404


REASONS: ClassVar = [
    (Part(), "its ledger was not read yet"),
    (Part(problem="the bucket does not answer\nmore"), "lab: the bucket does not answer"),
    (read(Kept(since_of(TODAY), lacks=NO_METERING)), f"lab: {NO_METERING}"),
    (Part(began_s=NOW_S - 95), "lab: no answer for 95 s"),
    (read(kept("lab", [], unread=frozenset({YESTERDAY, FIRST}))), "lab: 2 days are still being read"),
    (read(kept("lab", [], wrong={YESTERDAY: "is not a day"})), "lab: is not a day"),
]


@pytest.mark.parametrize(("part", "says"), REASONS)
def test_a_ledger_that_is_missing_is_said_with_the_reason(lab, part, says):
    text = plain("bill/", facts(lab, bills=part))
    assert says in text
    assert "This bill is incomplete." in text


def test_a_cluster_that_is_not_built_has_no_bill_and_is_no_trouble(lab):
    text = plain("bill/", facts(lab, bills=read(None)))
    assert "The cluster is not built." in text
    assert "incomplete" not in text


def test_days_that_are_not_kept_any_more_are_said_with_the_command_that_prints_them(billed):
    before = since_of(TODAY) - timedelta(days=1)
    text = plain(f"bill/{before}/", billed)
    assert f"days before {since_of(TODAY)} are not kept here" in text
    assert "./menagerie bill prints the same, of any days" in text


@pytest.mark.parametrize(
    "when",
    ["2027-02", "2027-01-16", "2027-13", "2026-02-30", "x", "20270114", "2027-W02-4", "2027", "2027-1", "0000-01"],
)
def test_what_is_no_month_or_day_or_has_not_begun_is_404(billed, when):
    assert visited(Sight(True), f"bill/{when}/", billed).status == 404


def test_today_has_no_bill_yet_and_says_so(billed):
    assert f"No day of {TODAY} is over yet" in plain(f"bill/{TODAY}/", billed)


def test_on_the_first_of_a_month_the_bill_is_the_last_months():
    assert present(date(2027, 1, 1)) == Period("2026-12", date(2026, 12, 1), date(2026, 12, 31))
    assert present(date(2027, 1, 2)) == Period("2027-01", date(2027, 1, 1), date(2027, 1, 1))
    assert period("2027-01", date(2027, 1, 1)).dates == ()


def test_neighbours_of_periods_end_where_no_day_is_over():
    today = date(2027, 1, 2)
    assert [each and each.name for each in neighbours(period("2026-12", today), today)] == ["2026-11", "2027-01"]
    assert [each and each.name for each in neighbours(period("2027-01", today), today)] == ["2026-12", None]
    assert [each and each.name for each in neighbours(period("2027-01-01", today), today)] == ["2026-12-31", None]


def test_the_links_of_the_table_lead_to_each_team_and_its_day(billed):
    text = page("bill/", billed)
    assert f'href="../bill/{MONTH}/team/robotics/"' in text
    assert f'href="../bill/{YESTERDAY}/"' in text
