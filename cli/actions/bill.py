"""`bill`: what teams used, from the days in the buckets of clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, tzinfo
from pathlib import Path
from typing import TypeVar

import typer
from rich.text import Text

from cli import exits
from cli.failures import explain
from cli.output import console, errors, print_json, write_out
from cli.specs import checked
from cli.views.bill import page, table, text
from clients.access import NotBuiltError
from cluster.errors import FailedError, RefusedError
from cluster.load import clusters
from cluster.project import ROOT
from cluster.spec import Cluster
from controllers.bookkeeping.bucket import ledger_of
from controllers.bookkeeping.store import LedgerStore
from controllers.metering import bill as bills
from controllers.metering import spans
from controllers.metering.bill import Ledgers
from controllers.metering.day import Day
from controllers.metering.spans import Span
from controllers.tenancy.directory.names import slug
from operations import stack

T = TypeVar("T")


@dataclass(frozen=True)
class Form:
    """How a bill is shown: as text if none of these is given."""

    as_csv: bool = False
    html: Path | None = None
    as_json: bool = False


def span_of(first: date, last: date, zone: tzinfo, name: str) -> Span:
    """Return the interval of the days. Errors: raises BadParameter if the ledger can't be cut there."""
    try:
        return spans.span(first, last, zone, name)
    except ValueError as error:
        raise typer.BadParameter(f"--zone: {error}") from None


def bill(named: Mapping[str, Cluster], span: Span, team: str, form: Form, *, today: bool = False) -> None:
    """Print the bill and exit. named: clusters by their names on the command line; all clusters if empty.

    today: also of a day that has not ended.
    """
    ledgers, silent = _ledgers(named, lambda cluster, store: _read(cluster, store, span, today=today))
    made = bills.bill(span, ledgers, slug(team), silent)
    if form.as_json:
        print_json(made.to_json())
    elif form.as_csv:
        write_out(table.to_csv(made))
    elif form.html:
        form.html.write_text(page.to_html(made), encoding="utf-8")
        errors.print(Text(f"wrote {form.html}", style="dim"))
    else:
        text.show(made)
    if made.troubles and (form.as_csv or form.html):
        for trouble in made.troubles:
            errors.print(Text(f"incomplete: {trouble}", style="red"))
    raise typer.Exit(exits.FAILED if made.troubles or not made.clusters else exits.DONE)


def verify(named: Mapping[str, Cluster], span: Span, *, as_json: bool, today: bool = False) -> None:
    """Count every day again, compare with what is kept, print the result and exit. today: see `bill`."""
    results, silent = _ledgers(named, lambda cluster, store: _compare(cluster, store, span, today=today))
    rows = [row for result in results for row in result]
    good = bool(rows) and not silent and all(same for *_, same in rows)
    if as_json:
        days = [{"cluster": cluster, "day": day, "same": same} for cluster, day, same in rows]
        print_json({"days": days, "silent": silent, "ok": good})
    else:
        for cluster, day, same in rows:
            words = "no object" if same is None else "the same bytes" if same else "DIFFERENT bytes"
            console.print(Text(f"{cluster} {day}: {words}", style="green" if same else "red"))
        for name, why in silent.items():
            errors.print(Text(f"{name}: {why}", style="red"))
    raise typer.Exit(exits.DONE if good else exits.FAILED)


def _read(cluster: Cluster, store: LedgerStore, span: Span, *, today: bool) -> Ledgers:
    dates = tuple(span.utc_days())
    days = _days(store, dates, today=today)
    return Ledgers(cluster.name, days, tuple(day for day in dates if day not in days))


def _compare(cluster: Cluster, store: LedgerStore, span: Span, *, today: bool) -> list[tuple[str, str, bool | None]]:
    """Return (cluster, day, whether it has the same bytes again); None for a day without an object."""
    dates = tuple(span.utc_days())
    kept = _days(store, dates, today=today)
    rows: list[tuple[str, str, bool | None]] = []
    for day in dates:
        if day not in kept:
            rows.append((cluster.name, day.isoformat(), None))
            continue
        again = store.again(kept[day])
        rows.append((cluster.name, day.isoformat(), again.to_bytes() == kept[day].to_bytes()))
    return rows


def _days(store: LedgerStore, dates: tuple[date, ...], *, today: bool) -> dict[date, Day]:
    """Return the object of each day that has one. today: also the last one from before its end, of a day without another."""
    days = store.days(dates)
    running = {day: store.running(day) for day in dates if today and day not in days}
    return days | {day: made for day, made in running.items() if made}


def _ledgers(named: Mapping[str, Cluster], read: Callable[[Cluster, LedgerStore], T]) -> tuple[list[T], dict[str, str]]:
    """Return what is read of each ledger, and why others can't be. In a fleet, clusters that are not built have none."""
    results: list[T] = []
    silent: dict[str, str] = {}
    for name in named or clusters(ROOT):
        try:
            cluster = named.get(name) or checked(name)
            store = ledger_of(stack.access_to(cluster))
            if store is None:
                raise FailedError(f"it has no bucket yet; run: ./menagerie up {cluster.name}", code="ledger")
            results.append(read(cluster, store))
        except NotBuiltError:
            if named:
                raise
        except Exception as error:
            foreseen = explain(error)
            if foreseen is None or (named and isinstance(error, RefusedError)):
                raise
            silent[name] = foreseen.text.splitlines()[0]
    return results, silent
