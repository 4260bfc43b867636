"""A bill as a self-contained page, with its chart as inline SVG: no script, nothing loaded."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from cli.views.bill import traffic
from cli.views.bill.amounts import NO_ENERGY, Row, amount, energy, hours, kwh, money, percent, rest, rows
from cli.views.bill.text import widths
from cluster.pages import STYLE, template
from controllers.metering.bill import Bill, Sums
from controllers.metering.facts import Use

WIDTH = 960
"""Of the bar, in units of the drawing."""
# Use -> its colour on light and on dark screens, and a letter, so that nobody needs to tell colours apart.
_COLOURS = {
    Use.USED: ("#1e7a3c", "#79cf93"),
    Use.HELD: ("#a04b00", "#f0a868"),
    Use.FREE: ("#8c959f", "#6b7683"),
    Use.DRAINED: ("#1d5fb4", "#7fb4f5"),
    Use.BROKEN: ("#b42318", "#f59a91"),
    Use.BOOTING: ("#0b6b75", "#6fcbd6"),
}


class Part(NamedTuple):
    """A part of the bar."""

    use: Use
    x: int
    width: int
    share: str

    @property
    def kind(self) -> str:
        """Return its CSS class."""
        return self.use.replace(" ", "-")


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
        style=Markup(STYLE + _style()),
        parts=_parts(bill),
        width=WIDTH,
        rows=[_row(bill, row) for row in rows(bill)],
        rest=[(use, _cells(sums, Sums(), sums), money(bill, sums)) for use, sums in rest(bill)],
        total=(_cells(bill.total(), Sums(), bill.total()), money(bill, bill.total())),
        traffic=(list(traffic.COLUMNS), list(traffic.rows(bill))),
        energy=energy(bill),
        without_energy=[(pool, NO_ENERGY[source]) for pool, source in bill.without_energy.items()],
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
    both = Sums(*(one + other for one, other in zip(row.used, row.held, strict=True)))
    return PageRow(
        row.name, _cells(row.used, row.held, both), money(bill, both), percent(row.share), round(row.share * 100)
    )


def _cells(sums: Sums, held: Sums, both: Sums) -> tuple[str, ...]:
    own = (sums.gpu_hours, sums.cpu_hours, sums.memory_gib_hours, sums.storage_gib_hours, held.gpu_hours)
    return (*map(hours, own), kwh(both))


def _style() -> str:
    light, dark = (
        "".join(f".{use.replace(' ', '-')}{{fill:{shades[at]}}}" for use, shades in _COLOURS.items()) for at in (0, 1)
    )
    return f"svg{{max-width:100%;height:auto;display:block}}{light}@media (prefers-color-scheme:dark){{{dark}}}"
