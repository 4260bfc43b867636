"""Free capacity by pool, and what waits and why, of every cluster."""

from __future__ import annotations

from dataclasses import dataclass

from controllers.autoscaler.capacity import Row
from controllers.autoscaler.waits import Wait, some
from controllers.planner import Fate
from controllers.web.facts import ClusterFacts
from controllers.web.pages.page import Page, Values, Visit

MOST_LINES = 100
"""Largest number of reasons that are listed for a cluster."""
FATES = {
    Fate.ROOM: "fits on a host that is there or ordered",
    Fate.NEW: "gets a new host",
    Fate.WAITING: "keeps waiting",
    Fate.NEVER: "can never start",
}


@dataclass(frozen=True)
class Section:
    """A cluster on the page. pods: how many wait. waits: (who, what becomes of it, since when in Unix time). more: reasons that are left out."""

    facts: ClusterFacts
    trouble: str
    rows: tuple[Row, ...]
    pods: int
    waits: tuple[tuple[str, str, str, float], ...]
    more: int
    notices: tuple[str, ...]


def view(visit: Visit) -> Values:
    """Return the values of the page."""
    now_s = visit.site.clock()
    return {"title": "Capacity", "sections": tuple(_section(each, now_s) for each in visit.site.look())}


def _section(facts: ClusterFacts, now_s: float) -> Section:
    capacity = facts.capacity.value
    trouble = facts.spec.trouble(now_s) or facts.capacity.trouble(now_s)
    if capacity is None:
        return Section(facts, trouble, (), 0, (), 0, ())
    pods = sum(len(wait.pods) for wait in capacity.waits)
    shown = tuple(_line(wait) for wait in capacity.waits[:MOST_LINES])
    more = max(len(capacity.waits) - MOST_LINES, 0)
    return Section(facts, trouble, _sorted(capacity.rows), pods, shown, more, capacity.notices)


def _sorted(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """Return the rows as `capacity` sorts them."""
    return tuple(sorted(rows, key=lambda row: (row.gpu_kind, row.pool)))


def _line(wait: Wait) -> tuple[str, str, str, float]:
    return some(wait.pods), FATES[wait.fate], wait.reason, wait.since_s


PAGE = Page("capacity", "capacity/", "capacity.html.j2", view, "Capacity")
