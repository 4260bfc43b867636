"""The fleet: a row for each cluster, with its state, its nodes, the operation that holds it, and the age of all that."""

from __future__ import annotations

from dataclasses import dataclass

from controllers.web.facts import ClusterFacts
from controllers.web.pages.page import Page, Values, Visit
from operations.status.fleet import FleetRow

KINDS = {"well": "healthy", "not well": "down", "no answer": "down", "unknown": "unknown", "being read": "unknown"}
"""State of a row -> the health whose colour it has. `not built` has none."""


@dataclass(frozen=True)
class FleetLine:
    """A row of the page. nodes: "" if they were not read. held: who holds the cluster, "" if nobody does."""

    row: FleetRow
    kind: str
    nodes: str
    held: str
    oldest_s: float | None


def view(visit: Visit) -> Values:
    """Return the values of the page."""
    now_s = visit.site.clock()
    return {"title": "Fleet", "lines": tuple(_line(each, now_s) for each in visit.site.look())}


def _line(facts: ClusterFacts, now_s: float) -> FleetLine:
    row = facts.row(now_s)
    capacity = facts.capacity.value
    nodes = f"{capacity.ready:,} of {len(capacity.nodes):,}" if capacity else ""
    return FleetLine(row, KINDS.get(row.state, ""), nodes, held_by(facts), facts.oldest_s())


def held_by(facts: ClusterFacts) -> str:
    """Return the operation that holds a cluster in words, "" if there is none."""
    ledger = facts.operations.value
    if ledger is None or ledger.current is None:
        return ""
    return ledger.current.held_by if ledger.lives else f"interrupted run of {ledger.current.held_by}"


PAGE = Page("fleet", "", "fleet.html.j2", view, "Fleet")
