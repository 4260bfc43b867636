"""One operation on a cluster: who ran it, its steps with their times, and how it ended."""

from __future__ import annotations

from controllers.web.pages.page import Page, Values, Visit


def view(visit: Visit) -> Values | None:
    """Return the values of the page; None for an operation that is not among those that were read."""
    facts = visit.site.cluster(visit.parameters["name"])
    ledger = facts.operations.value if facts else None
    if facts is None or ledger is None:
        return None
    records = [*((ledger.current,) if ledger.current else ()), *ledger.past]
    record = next((each for each in records if each.id == visit.parameters["id"]), None)
    if record is None:
        return None
    runs = ledger.current is not None and record.id == ledger.current.id
    state = record.result if not runs else "running" if ledger.lives else "interrupted"
    return {"title": f"{record.verb} of {facts.name}", "facts": facts, "record": record, "state_word": state}


PAGE = Page("operation", "cluster/{name}/operation/{id}/", "operation.html.j2", view)
