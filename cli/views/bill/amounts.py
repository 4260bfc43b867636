"""What the forms of a bill have in common: rows of teams, numbers in words, and the parts of the bar."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from controllers.metering.bill import Bill, Line, Sums, Waste
from controllers.metering.facts import EnergySource, Use

NOBODY = "(no team)"
BAR = {Use.USED: "█", Use.HELD: "▓", Use.FREE: "░", Use.DRAINED: "▒", Use.BROKEN: "×", Use.BOOTING: "·"}
"""Use -> its character, so that a bar is legible without colours."""


class Row(NamedTuple):
    """A row of the table. held: of hosts kept idle for it. share: of all dollars, or of all GPU or host hours."""

    name: str
    used: Sums
    held: Sums
    share: float

    @property
    def dollars(self) -> float:
        return self.used.dollars + self.held.dollars


def rows(bill: Bill) -> Iterator[Row]:
    """Yield a row for each team, or for each namespace of the bill's team; the largest first."""
    used = bill.by(lambda line: _name(bill, line), lambda line: line.use is Use.USED)
    held = bill.by(lambda line: _name(bill, line), lambda line: line.use is Use.HELD)
    at, whole = weight(bill)
    made = []
    for name in {*used, *held}:
        own = (used.get(name, Sums()), held.get(name, Sums()))
        made.append(Row(name, *own, sum(sums[at] for sums in own) / whole if whole else 0.0))
    yield from sorted(made, key=lambda row: (-row.share, row.name))


def rest(bill: Bill) -> Iterator[tuple[Use, Sums]]:
    """Yield what belongs to no row: time of hosts that were free or out of service."""
    sums = bill.by(lambda line: line.use)
    for use in (Use.FREE, Use.DRAINED, Use.BROKEN, Use.BOOTING):
        if use in sums:
            yield use, sums[use]


def weight(bill: Bill) -> tuple[int, float]:
    """Return by which amount shares are counted, as an index of `Sums`, and its total: dollars, else GPU or host hours."""
    total = bill.total()
    for name in ("dollars", "gpu_hours"):
        at = Sums._fields.index(name)
        if total[at] and not (name == "dollars" and total.unpriced_hours):
            return at, total[at]
    return 0, total.host_hours


def money(bill: Bill, sums: Sums) -> str:
    """Return dollars, with a mark if some of the time has no price; "?" if none of it has."""
    if sums.unpriced_hours and not sums.dollars:
        return "?"
    return f"{sums.dollars:,.2f}" + ("+?" if sums.unpriced_hours else "")


def kwh(sums: Sums) -> str:
    """Return energy in kWh, with ~ if some of it is an estimate, and a mark if some of the hosts have none; "?" if none has."""
    if sums.unmetered_hours and not sums.kwh:
        return "?"
    estimate = "~" if sums.estimated_kwh else ""
    return f"{estimate}{sums.kwh:,.1f}" + ("+?" if sums.unmetered_hours else "") if sums.kwh else ""


def energy(bill: Bill) -> str:
    """Return a sentence about the bill's energy, "" if none is known."""
    total = bill.total()
    if not total.kwh:
        return ""
    estimated = f"{total.estimated_kwh:,.1f} of it an estimate" if total.estimated_kwh else "all of it read from BMCs"
    cost = f"; {total.energy_dollars:,.2f} $ at price_kwh, apart from the other dollars" if total.energy_dollars else ""
    return f"energy: {total.kwh:,.1f} kWh, {estimated}{cost}"


NO_ENERGY = {
    EnergySource.CLOUD: "it is in the region, and no cloud says what its machines draw",
    EnergySource.NONE: "neither watts_idle and watts_busy nor a BMC's reader are declared",
}
"""Why the energy of a pool is unknown."""


def hours(value: float) -> str:
    """Return a number of hours: one decimal, "" for none."""
    return f"{value:,.1f}" if value else ""


def percent(value: float) -> str:
    return f"{value:.1%}"


def amount(waste: Waste) -> str:
    """Return how much was wasted: GPU hours or host hours, and dollars if the price is known."""
    sums = waste.sums
    size = f"{sums.gpu_hours:,.1f} GPU hours" if sums.gpu_hours else f"{sums.host_hours:,.1f} host hours"
    return f"{size}, {sums.dollars:,.2f} $" if sums.dollars else size


def _name(bill: Bill, line: Line) -> str:
    if not bill.team:
        return line.team or NOBODY
    return line.namespace + (f" ({line.user})" if line.user else "") if line.namespace else "(held idle)"
