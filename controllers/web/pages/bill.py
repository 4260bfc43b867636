"""What teams used and what it cost: by month and by day, of all clusters or one, of everybody or a team."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

from controllers.metering.amounts import NOBODY, Row, amount, cells, hours, money, percent, rest, rows
from controllers.metering.bill import IDLE, Bill, Sums
from controllers.metering.colours import css_class
from controllers.metering.facts import Use
from controllers.web import charts
from controllers.web.billing import Billed, Period, billed, neighbours, period, present
from controllers.web.facts import ClusterFacts
from controllers.web.pages.page import Page, Values, Visit

MOST_LINES = 50
"""Largest number of troubles, and of notices, that are listed."""


class Choice(NamedTuple):
    """A link to another bill. words: of its path. current: whether it is this page."""

    name: str
    words: tuple[str, ...]
    current: bool


class Line(NamedTuple):
    """A row of a table. words: of the path of its own bill, () if it has none."""

    name: str
    words: tuple[str, ...]
    cells: tuple[str, ...]
    dollars: str
    share: str = ""


def view(visit: Visit) -> Values | None:
    """Return the values of the page; None for a period, a cluster or a team that there is not, or that may not be seen."""
    now_s = visit.site.clock()
    today = datetime.fromtimestamp(now_s, UTC).date()
    own = period(visit.parameters["when"], today) if "when" in visit.parameters else present(today)
    cluster, everything = visit.parameters.get("name", ""), tuple(visit.site.look())
    team = visit.parameters.get("team", "") or ("" if visit.sight.whole else min(visit.sight.teams, default=""))
    shown = tuple(each for each in everything if cluster in ("", each.name))
    if own is None or (cluster and not shown) or not visit.sight.bill_of(team):
        return None
    place = _Place(own, cluster, team)
    return {
        "title": _title(place),
        "place": place,
        "read": tuple((each.name, each.bills.at_s) for each in shown),
        "clusters": tuple(_clusters(place, everything)),
        "teams": tuple(_teams(place, visit)),
        "periods": tuple(_periods(place, today)),
        **(_values(place, billed(own, shown, team, now_s)) if own.dates else {"bill": None}),
    }


class _Place(NamedTuple):
    """Which bill a page shows."""

    own: Period
    cluster: str
    team: str

    def words(self, **other: str) -> tuple[str, ...]:
        """Return the words of its path, with another period, cluster or team."""
        when = other.get("when", self.own.name)
        cluster, team = other.get("cluster", self.cluster), other.get("team", self.team)
        return ("bill", when, *(("cluster", cluster) if cluster else ()), *(("team", team) if team else ()))


def _title(place: _Place) -> str:
    whose = f" of team {place.team}" if place.team else ""
    return f"Bill{whose}, {place.own.name}" + (f", cluster {place.cluster}" if place.cluster else "")


def _clusters(place: _Place, clusters: tuple[ClusterFacts, ...]) -> Iterator[Choice]:
    if len(clusters) > 1:
        yield Choice("All clusters", place.words(cluster=""), not place.cluster)
        for each in clusters:
            yield Choice(each.name, place.words(cluster=each.name), place.cluster == each.name)


def _teams(place: _Place, visit: Visit) -> Iterator[Choice]:
    """Yield the choices of who sees some bills; who sees all gets to a team by the table, and back by the first choice."""
    if visit.sight.whole:
        if place.team:
            yield Choice("All teams", place.words(team=""), False)
            yield Choice(place.team, place.words(), True)
    elif len(visit.sight.teams) > 1:
        for team in sorted(visit.sight.teams):
            yield Choice(team, place.words(team=team), team == place.team)


def _periods(place: _Place, today: date) -> Iterator[Choice]:
    before, after = neighbours(place.own, today)
    if before:
        yield Choice(f"← {before.name}", place.words(when=before.name), False)
    if not place.own.is_month:
        yield Choice(f"month {place.own.month}", place.words(when=place.own.month), False)
    yield Choice(place.own.name, place.words(), True)
    if after:
        yield Choice(f"{after.name} →", place.words(when=after.name), False)


def _values(place: _Place, own: Billed) -> dict[str, Any]:
    bill = own.whole
    total = bill.total()
    return {
        "bill": bill,
        "troubles": bill.troubles[:MOST_LINES],
        "more_troubles": max(len(bill.troubles) - MOST_LINES, 0),
        "notices": bill.notices[:MOST_LINES],
        "more_notices": max(len(bill.notices) - MOST_LINES, 0),
        "uses": tuple(_uses(bill)),
        "bar": charts.bar(bill.shares()),
        "columns": charts.columns([(each.day, each.uses) for each in own.days], own.unit)
        if place.own.is_month
        else None,
        "days": tuple(_days(place, own)) if place.own.is_month else (),
        "unit": own.unit,
        "lines": tuple(_lines(place, bill)),
        "idle": percent(bill.idle_share),
        "wastes": tuple((waste.words, amount(waste)) for waste in bill.wastes()),
        "counted": bool(total.host_hours or total.storage_gib_hours),
    }


def _uses(bill: Bill) -> Iterator[tuple[Use, str, Line]]:
    """Yield (use, its class, its numbers) of those that have any part."""
    sums, shares = bill.by(lambda line: line.use), bill.shares()
    for use in Use:
        own = sums.get(use, Sums())
        line = Line(str(use), (), (hours(own.gpu_hours), hours(own.host_hours)), money(bill, own), percent(shares[use]))
        if use in sums:
            yield use, css_class(use), line


def _days(place: _Place, own: Billed) -> Iterator[tuple[Line, str]]:
    """Yield the numbers of each day, and the share of it that was idle."""
    for each in own.days:
        name, whole = each.day.isoformat(), sum(each.uses.values())
        numbers = tuple(hours(each.uses.get(use, 0.0)) for use in Use)
        dollars = money(own.whole, each.sums) if whole else ""
        idle = percent(sum(each.uses.get(use, 0.0) for use in IDLE) / whole) if whole else ""
        yield Line(name, place.words(when=name), numbers, dollars), idle


def _lines(place: _Place, bill: Bill) -> Iterator[Line]:
    """Yield the rows of the table: of teams or namespaces, of what is nobody's, and of all."""
    for row in rows(bill):
        yield _row(place, bill, row)
    for use, sums in rest(bill):
        yield Line(f"{use}, nobody's", (), cells(sums), money(bill, sums))
    yield Line("all", (), cells(bill.total()), money(bill, bill.total()))


def _row(place: _Place, bill: Bill, row: Row) -> Line:
    team = "" if place.team or row.name == NOBODY else row.name
    words = place.words(team=team) if team else ()
    return Line(row.name, words, cells(row.used, row.held), money(bill, row.both), percent(row.share))


_PATHS = (
    "bill/{when}/",
    "bill/{when}/team/{team}/",
    "bill/{when}/cluster/{name}/",
    "bill/{when}/cluster/{name}/team/{team}/",
)
PAGE = Page("bill", "bill/", "bill.html.j2", view, "Bill", whole=False)
MORE = tuple(Page("bill", path, "bill.html.j2", view, whole=False) for path in _PATHS)
"""The same page for other months and days, clusters and teams."""
