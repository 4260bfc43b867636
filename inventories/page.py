"""A run's report as a self-contained page: no scripts, no external resources, every text escaped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from markupsafe import Markup

from cluster.pages import STYLE, template
from inventories.report import RunReport
from inventories.tally import duration

SLOWEST = 15
_OPEN = 40


@dataclass(frozen=True)
class Run:
    """Who runs what. operator: user@host, as in records of operations. toolkit: its release and commit.

    options: those of the command line, "" for none. check: whether it only reports what would change.
    """

    cluster: str
    operator: str
    toolkit: str
    options: str
    began: datetime
    check: bool = False

    @property
    def command(self) -> str:
        return f"./menagerie configure {self.cluster} {self.options}".strip()


@dataclass(frozen=True)
class _Row:
    host: str
    state: str
    seconds: float
    changes: tuple[str, ...]
    notes: tuple[str, ...]
    diff: str


def html(report: RunReport, run: Run, ended: datetime) -> str:
    """Return the page of a run."""
    rows = tuple(_rows(report, check=run.check))
    states = [row.state for row in rows]
    return template(Path(__file__).parent).render(
        style=Markup(STYLE),
        title=f"Workers of {run.cluster}{', check only' if run.check else ''}",
        run=run,
        began=f"{run.began:%Y-%m-%d %H:%M:%S %Z}",
        took=duration((ended - run.began).total_seconds()),
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
