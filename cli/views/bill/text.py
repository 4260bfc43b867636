"""A bill in a terminal: the table, the bar, the idle share, the largest wastes, and what is missing."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from cli.output import console, errors
from cli.views.bill import traffic
from cli.views.bill.amounts import BAR, NO_ENERGY, amount, energy, hours, kwh, money, percent, rest, rows
from controllers.metering.bill import Bill, Sums
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
_AMOUNTS = ("GPU H", "CPU H", "MEMORY GIB H", "STORAGE GIB H", "HELD GPU H")
_LAST = ("$", "SHARE")


def show(bill: Bill) -> None:
    """Print the bill. Troubles go to standard error, so that a file of the table has them not."""
    whose = f", team {bill.team}" if bill.team else ""
    console.print(
        f"{bill.span.name}, {bill.span.zone}: {', '.join(bill.clusters) or 'no cluster'}{whose}", markup=False
    )
    for day in bill.running:
        console.print(Text(day, style="yellow"))
    console.print(_table(bill))
    if bill.total().host_hours:
        console.print(bar(bill))
        console.print(_legend(bill))
        if not bill.team:
            console.print(f"idle: {percent(bill.idle_share)} of what was in the ledger")
    for number, waste in enumerate(bill.wastes(), 1):
        console.print(f"  waste {number}: {waste.words}: {amount(waste)}", markup=False)
    if bill.traffic:
        console.print(_traffic(bill))
    _remarks(bill)


def _remarks(bill: Bill) -> None:
    """Print the sentence about energy, and to standard error what has no price or energy, and what is missing."""
    if about := energy(bill):
        console.print(about, markup=False)
    for pool, source in bill.without_energy.items() if about else ():
        errors.print(Text(f"without energy: {pool}: {NO_ENERGY[source]}", style="dim"))
    for pool in bill.without_price:
        errors.print(
            Text(f"without a price: {pool}: price_hour at a site, autoscaler.prices in the region", style="yellow")
        )
    for notice in bill.notices:
        errors.print(Text(notice, style="dim"))
    for trouble in bill.troubles:
        errors.print(Text(f"incomplete: {trouble}", style="red"))


def bar(bill: Bill) -> Text:
    """Return shares of uses as one line. Every use that has any part has at least one character."""
    text = Text()
    for use, count in widths(bill.shares(), WIDTH).items():
        text.append(BAR[use] * count, style=_STYLES[use])
    return text


def widths(shares: dict[Use, float], width: int) -> dict[Use, int]:
    """Split a width by shares; the largest gets what rounding leaves."""
    counts = {use: max(1, int(share * width)) for use, share in shares.items() if share > 0}
    if counts:
        largest = max(counts, key=lambda use: shares[use])
        counts[largest] += width - sum(counts.values())
    return counts


def _legend(bill: Bill) -> Text:
    parts = [(use, share) for use, share in bill.shares().items() if share > 0]
    text = Text()
    for use, share in parts:
        text.append(f"{BAR[use]} {use} {percent(share)}  ", style=_STYLES[use])
    return text


def _table(bill: Bill) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("NAMESPACE" if bill.team else "TEAM")
    with_energy = bool(bill.total().kwh)
    for heading in (*_AMOUNTS, *(("KWH",) if with_energy else ()), *_LAST):
        table.add_column(heading, justify="right")
    for row in rows(bill):
        used, both = row.used, Sums(*(one + other for one, other in zip(row.used, row.held, strict=True)))
        table.add_row(Text(row.name), *_cells(used, row.held, both, with_energy), money(bill, both), percent(row.share))
    for use, sums in rest(bill):
        table.add_row(
            Text(f"{use}, nobody's", style="dim"), *_cells(sums, Sums(), sums, with_energy), money(bill, sums), ""
        )
    total = bill.total()
    table.add_row(Text("all", style="bold"), *_cells(total, Sums(), total, with_energy), money(bill, total), "")
    return table


def _traffic(bill: Bill) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("NAMESPACE" if bill.team else "TEAM")
    for heading in traffic.COLUMNS:
        table.add_column(heading, justify="right")
    for name, cells in traffic.rows(bill):
        table.add_row(Text(name), *cells)
    return table


def _cells(sums: Sums, held: Sums, both: Sums, with_energy: bool) -> tuple[str, ...]:
    own = (sums.gpu_hours, sums.cpu_hours, sums.memory_gib_hours, sums.storage_gib_hours, held.gpu_hours)
    return (*map(hours, own), *((kwh(both),) if with_energy else ()))
