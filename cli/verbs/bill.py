"""`bill`: its arguments."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

import typer

from cli.examples import examples
from cli.options import ClustersArg, JsonOpt, TeamOpt
from cli.specs import checked


@examples(
    ("bill", "the whole fleet, yesterday"),
    ("bill jaguar --month 2026-11", "one cluster, a month"),
    ("bill jaguar --team robotics", "one team, by namespace"),
    ("bill --month 2026-11 --csv", "for a spreadsheet"),
    ("bill --from 2026-11-01 --html bill.html", "a page"),
    ("bill jaguar --zone Europe/Berlin", "days of another time zone"),
    ("bill jaguar --today", "the day that has not ended, so far"),
    ("bill jaguar --verify", "count again, and compare"),
)
def bill(
    clusters: ClustersArg = None,
    team: TeamOpt = "",
    day: Annotated[str | None, typer.Option("--day", metavar="DATE", help="One day. Default: yesterday.")] = None,
    month: Annotated[
        str | None, typer.Option("--month", metavar="YYYY-MM", help="One month; the present one until yesterday.")
    ] = None,
    from_: Annotated[str | None, typer.Option("--from", metavar="DATE", help="The first day.")] = None,
    to: Annotated[str | None, typer.Option("--to", metavar="DATE", help="The last day. Default: yesterday.")] = None,
    today: Annotated[bool, typer.Option("--today", help="The day that has not ended, as it was counted last.")] = False,
    zone: Annotated[str, typer.Option("--zone", metavar="ZONE", help="Time zone of the days.")] = "UTC",
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV on standard output.")] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="PATH", help="Write a page to a file.", show_default=False)
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Count each day again from the journal, and compare. Writes nothing.")
    ] = False,
    as_json: JsonOpt = False,
) -> None:
    """Show what teams used: GPUs, CPUs, memory and storage, in hours and dollars. Changes nothing.

    Reads the days that the controller `metering` keeps in each cluster's bucket.
    Shows the share that was idle and the three largest wastes. A day that is
    missing or incomplete is named, and a price that is unknown is never guessed.

    It is a bill of what was used, at your prices or list prices, not an estimate
    and not your cloud's bill: docs/how-to/bill.md.

    Exit code 0 only if every day is there and complete, and --verify finds no
    difference.
    """
    if as_csv + as_json + (html is not None) > 1:
        raise typer.BadParameter("--csv, --json and --html are three forms of one bill: give one of them")
    days = _days(_zone(zone), day, month, from_, to, today=today)
    loaded = {name: checked(name) for name in clusters or ()}
    from cli.actions import bill as action

    form = action.Form(as_csv=as_csv, html=html, as_json=as_json)
    if verify:
        action.verify(loaded, action.span_of(*days, _zone(zone), zone), as_json=as_json, today=today)
    else:
        action.bill(loaded, action.span_of(*days, _zone(zone), zone), team, form, today=today)


def _today(zone: tzinfo) -> date:
    return datetime.now(zone).date()


def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC  # also on a machine without time zones
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise typer.BadParameter(
            f"--zone: {name!r} is not a time zone of this machine; write, for example, Europe/Berlin"
        ) from None


def _days(
    zone: tzinfo, day: str | None, month: str | None, from_: str | None, to: str | None, *, today: bool
) -> tuple[date, date]:
    """Return the first and the last day. Only days that are over have a bill, but for today's so far."""
    yesterday = _today(zone) - timedelta(days=1)
    if today + sum(each is not None for each in (day, month, from_ or to)) > 1:
        raise typer.BadParameter("--day, --month, --today, and --from with --to exclude each other")
    if today:
        return yesterday + timedelta(days=1), yesterday + timedelta(days=1)
    if to and not from_:
        raise typer.BadParameter("--to needs --from, the first day")
    if month:
        first, last = _month(month)
        last = min(last, yesterday) if first <= yesterday else last
    elif from_:
        first, last = _date("--from", from_), _date("--to", to) if to else yesterday
    else:
        first = last = _date("--day", day) if day else yesterday
    if last > yesterday:
        raise typer.BadParameter(
            f"{last.isoformat()} is not over yet; the last day with a bill is {yesterday.isoformat()}; --today has what is known so far"
        )
    if last < first:
        raise typer.BadParameter(f"{last.isoformat()} is before {first.isoformat()}")
    return first, last


def _date(option: str, text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{option}: {text!r} is not a date; write it as 2026-11-27") from None


def _month(text: str) -> tuple[date, date]:
    try:
        first = datetime.strptime(text, "%Y-%m").date()
    except ValueError:
        raise typer.BadParameter(f"--month: {text!r} is not a month; write it as 2026-11") from None
    return first, (first.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)
