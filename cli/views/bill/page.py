"""A bill as a self-contained page, with its chart as inline SVG: no script, nothing loaded."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from cluster.pages import STYLE, template
from controllers.metering import colours
from controllers.metering.amounts import Row, amount, cells, money, percent, rest, rows, widths
from controllers.metering.bill import Bill
from controllers.metering.facts import Use

WIDTH = 960
"""Of the bar, in units of the drawing."""
_STYLE = "svg{max-width:100%;height:auto;display:block}"


class Part(NamedTuple):
    """A part of the bar."""

    use: Use
    x: int
    width: int
    share: str

    @property
    def kind(self) -> str:
        """Return its CSS class."""
        return colours.css_class(self.use)


class PageRow(NamedTuple):
    """A row of the page's table. width: of its bar, of 100."""

    name: str
    cells: tuple[str, ...]
    dollars: str
    share: str
    width: int


def to_html(bill: Bill) -> str:
    """Return the page."""
    return template(Path(__file__).parent).render(
        title=f"Bill of {bill.span.name}" + (f", team {bill.team}" if bill.team else ""),
        bill=bill,
        style=Markup(STYLE + _STYLE + colours.style()),
        parts=_parts(bill),
        width=WIDTH,
        rows=[_row(bill, row) for row in rows(bill)],
        rest=[(use, cells(sums), money(bill, sums)) for use, sums in rest(bill)],
        total=(cells(bill.total()), money(bill, bill.total())),
        idle=percent(bill.idle_share),
        wastes=[(waste.words, amount(waste)) for waste in bill.wastes()],
    )


def _parts(bill: Bill) -> list[Part]:
    parts, x, shares = [], 0, bill.shares()
    for use, width in widths(shares, WIDTH).items():
        parts.append(Part(use, x, width, percent(shares[use])))
        x += width
    return parts


def _row(bill: Bill, row: Row) -> PageRow:
    numbers = cells(row.used, row.held)
    return PageRow(row.name, numbers, money(bill, row.both), percent(row.share), round(row.share * 100))
