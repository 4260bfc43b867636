"""A run's report as a self-contained page: no scripts, no external resources, every text escaped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from inventories.report import RunReport
from inventories.tally import duration

SLOWEST = 15
_OPEN = 40


@dataclass(frozen=True)
class _Row:
    host: str
    state: str
    seconds: float
    changes: tuple[str, ...]
    notes: tuple[str, ...]
    diff: str


def html(report: RunReport, cluster: str, when: str, *, check: bool = False) -> str:
    """Return the page. when: the end of the run, in readable form."""
    rows = tuple(_rows(report, check=check))
    states = [row.state for row in rows]
    return _template().render(
        title=f"Workers of {cluster}{', check only' if check else ''}",
        when=when,
        took=duration(report.seconds),
        check=check,
        canceled=report.canceled,
        totals=[(state, states.count(state)) for state in dict.fromkeys(_STATES) if state in states],
        groups=report.groups,
        rows=rows,
        tasks=report.times[:SLOWEST],
        slowest=report.slowest(SLOWEST),
        many=_OPEN,
    )


_STATES = ("failed", "unreachable", "would change", "changed", "unchanged", "not started", "skipped")


def _rows(report: RunReport, *, check: bool) -> Iterator[_Row]:
    """Yield every host of the run, the worst first."""
    states = dict(_state(report, check=check))
    for host in sorted(states, key=lambda host: (_STATES.index(states[host]), host)):
        seconds = report.hosts[host].seconds if host in report.hosts else 0.0
        changes, notes = report.changes.get(host, ()), report.notes.get(host, ())
        yield _Row(host, states[host], seconds, changes, notes, report.diffs.get(host, ""))


def _state(report: RunReport, *, check: bool) -> Iterator[tuple[str, str]]:
    for host, result in report.hosts.items():
        if result.failed:
            yield host, "failed"
        elif result.unreachable:
            yield host, "unreachable"
        elif result.changed:
            yield host, "would change" if check else "changed"
        else:
            yield host, "unchanged"
    yield from ((host, "not started") for host in report.not_begun)
    yield from ((host, "skipped") for host in report.left_out)


@cache
def _template() -> Template:
    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("page.html.j2")
