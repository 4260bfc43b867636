"""A bill in a terminal: the table, the bar, the idle share, the largest wastes, and what is missing."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from cli.output import console, errors
from controllers.metering.amounts import BAR, amount, cells, money, percent, rest, rows, widths
from controllers.metering.bill import Bill
from controllers.metering.facts import Use

WIDTH = 60
"""Characters of the bar."""
_STYLES = {
    Use.USED: "green",
    Use.HELD: "yellow",
    Use.FREE: "dim",
    Use.DRAINED: "blue",
    Use.BROKEN: "red",
    Use.BOOTING: "cyan",
}
_AMOUNTS = ("GPU H", "CPU H", "MEMORY GIB H", "STORAGE GIB H", "HELD GPU H", "$", "SHARE")


def show(bill: Bill) -> None:
    """Print the bill. Troubles go to standard error, so that a file of the table has them not."""
    whose = f", team {bill.team}" if bill.team else ""
    console.print(
        f"{bill.span.name}, {bill.span.zone}: {', '.join(bill.clusters) or 'no cluster'}{whose}", markup=False
    )
    console.print(_table(bill))
    if bill.total().host_hours:
        console.print(bar(bill))
        console.print(_legend(bill))
        if not bill.team:
            console.print(f"idle: {percent(bill.idle_share)} of what was in the ledger")
    for number, waste in enumerate(bill.wastes(), 1):
        console.print(f"  waste {number}: {waste.words}: {amount(waste)}", markup=False)
    for pool in bill.without_price:
        errors.print(
            Text(f"without a price: {pool}: price_hour at a site, autoscaler.prices in the region", style="yellow")
        )
    for notice in bill.notices:
        errors.print(Text(notice, style="dim"))
    for trouble in bill.troubles:
        errors.print(Text(f"incomplete: {trouble}", style="red"))


def bar(bill: Bill) -> Text:
    """Return shares of uses as one line."""
    text = Text()
    for use, count in widths(bill.shares(), WIDTH).items():
        text.append(BAR[use] * count, style=_STYLES[use])
    return text


def _legend(bill: Bill) -> Text:
    parts = [(use, share) for use, share in bill.shares().items() if share > 0]
    text = Text()
    for use, share in parts:
        text.append(f"{BAR[use]} {use} {percent(share)}  ", style=_STYLES[use])
    return text


def _table(bill: Bill) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("NAMESPACE" if bill.team else "TEAM")
    for heading in _AMOUNTS:
        table.add_column(heading, justify="right")
    for row in rows(bill):
        table.add_row(Text(row.name), *cells(row.used, row.held), money(bill, row.both), percent(row.share))
    for use, sums in rest(bill):
        table.add_row(Text(f"{use}, nobody's", style="dim"), *cells(sums), money(bill, sums), "")
    table.add_row(Text("all", style="bold"), *cells(bill.total()), money(bill, bill.total()), "")
    return table
