"""What a dashboard shows, as data that needs no library. `components.monitoring.grafana` turns it into Grafana's JSON."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Query:
    """An expression, and the name of its lines: Grafana puts in labels for {{label}}."""

    expr: str
    legend: str = ""


@dataclass(frozen=True)
class Panel:
    """A chart over time, or one number. unit: as Grafana names it. about: what to look for, in a sentence."""

    title: str
    queries: tuple[Query, ...]
    unit: str = "short"
    about: str = ""
    number: bool = False

    @property
    def width(self) -> int:
        """Return the width in Grafana's grid of 24 columns."""
        return 4 if self.number else 12

    @property
    def height(self) -> int:
        return 4 if self.number else 8


@dataclass(frozen=True)
class Variable:
    """A choice at the top of a dashboard: the values that a label of a metric has."""

    name: str
    metric: str
    label: str


@dataclass(frozen=True)
class Dashboard:
    """A dashboard. uid: stays, so that links to it do."""

    uid: str
    title: str
    about: str
    panels: tuple[Panel, ...]
    variables: tuple[Variable, ...] = ()


def chart(title: str, expr: str, legend: str = "", *, unit: str = "short", about: str = "") -> Panel:
    """Return a chart of one query."""
    return Panel(title, (Query(expr, legend),), unit, about)


def number(title: str, expr: str, *, unit: str = "short", about: str = "") -> Panel:
    """Return a panel with one number."""
    return Panel(title, (Query(expr),), unit, about, number=True)
