"""A cluster: its drawing in live colours and the same as a table, the lines of its status, and its operations."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from markupsafe import Markup

from components.drawing.live import MARKS, MEANINGS, Health
from controllers.web.facts import ClusterFacts, NodeState
from controllers.web.live import summary
from controllers.web.pages.fleet import KINDS, held_by
from controllers.web.pages.page import Page, Values, Visit
from controllers.web.parts import Part
from operations.status.model import StatusItem

MOST_NODES = 100
"""Largest number of nodes that are listed by name; the table of parts has the numbers of all."""
LEGEND = tuple((health, MARKS[health], MEANINGS[health]) for health in Health)


def view(visit: Visit) -> Values | None:
    """Return the values of the page."""
    facts = visit.site.cluster(visit.parameters["name"])
    if facts is None:
        return None
    now_s = visit.site.clock()
    row = facts.row(now_s)
    status, ledger, nodes = facts.status.value, facts.operations.value, _nodes(facts)
    bad = [node for node in nodes or () if node.health is not Health.HEALTHY]
    return {
        "title": f"Cluster {facts.name}",
        "facts": facts,
        "row": row,
        "kind": KINDS.get(row.state, ""),
        "troubles": _troubles(facts, now_s),
        # Every text in it was escaped when the SVG was written.
        "drawing": Markup(facts.drawn.svg) if facts.drawn else "",
        "parts": facts.drawn.parts if facts.drawn else (),
        "legend": LEGEND,
        "meanings": MEANINGS,
        "nodes": summary(nodes) if nodes is not None else "",
        "bad": bad[:MOST_NODES],
        "more": max(len(bad) - MOST_NODES, 0),
        "groups": _groups(status.items) if status else (),
        "ledger": ledger,
        "held": held_by(facts),
    }


def _nodes(facts: ClusterFacts) -> tuple[NodeState, ...] | None:
    return facts.capacity.value.nodes if facts.capacity.value else None


def _troubles(facts: ClusterFacts, now_s: float) -> tuple[tuple[str, str], ...]:
    """Return (part, why it is missing or old)."""
    parts: dict[str, Part[Any]] = {
        "spec": facts.spec,
        "status": facts.status,
        "nodes and capacity": facts.capacity,
        "operations": facts.operations,
    }
    return tuple((name, text) for name, part in parts.items() if (text := part.trouble(now_s)))


def _groups(items: Iterable[StatusItem]) -> tuple[tuple[str, tuple[StatusItem, ...]], ...]:
    """Return (group, its items), in the order of `status`."""
    return tuple((group, tuple(own)) for group, own in groupby(items, lambda item: item.group))


PAGE = Page("cluster", "cluster/{name}/", "cluster.html.j2", view)
