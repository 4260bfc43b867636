"""`status`: one cluster, or all; once, or again and again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Protocol

import typer
from rich.console import Group
from rich.live import Live
from rich.text import Text

from cli import exits
from cli.options import JsonOpt, examples
from cli.output import console, print_json, write_out
from cli.specs import checked
from cluster.project import ROOT

if TYPE_CHECKING:
    from operations.status import Item, Status
    from operations.status.fleet import Fleet

EXAMPLES = examples(
    ("status", "all clusters, a line each"),
    ("status lab", "one, with all its parts"),
    ("status lab --watch", "again every 5 seconds"),
    ("status --watch --every 60", "all, once a minute"),
    ("status lab --json", "for a machine"),
)
_STATES = {"well": "green", "not built": "dim"}


class Seen(Protocol):
    """A status, or a fleet's."""

    @property
    def ok(self) -> bool: ...

    def to_json(self) -> dict[str, object]: ...


Look = Callable[[], tuple[Seen, list[Text]]]
"""Looks once: what was seen, and as lines."""


def status(
    cluster: Annotated[
        str | None,
        typer.Argument(metavar="CLUSTER", help="Name or path of a cluster.yaml; without it, all of inventories/."),
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Look again and again, until Ctrl-C.")] = False,
    every: Annotated[
        float, typer.Option("--every", metavar="SECONDS", min=1, help="With --watch: time between.")
    ] = 5.0,
    as_json: JsonOpt = False,
) -> None:
    """Show how the running cluster is; exit 0 only when all is well. Reads only.

    Each line that is not ok ends with the command that helps. Without a cluster:
    all clusters, and exit 0 when all that are built are well. --watch draws anew
    on a terminal, prints what has changed elsewhere, and with --json a document a
    line. docs/how-to/status.md explains every line.
    """
    look = _one(cluster) if cluster else _all()
    if watch:
        with suppress(KeyboardInterrupt):  # which is how a watch ends
            _watch(look, every, as_json=as_json)
        raise typer.Exit(exits.DONE)
    seen, shown = look()
    if as_json:
        print_json(seen.to_json())
    else:
        for line in shown:
            console.print(line)
    raise typer.Exit(exits.DONE if seen.ok else exits.FAILED)


def _one(name: str) -> Look:
    from cli.look import built
    from operations.stack import access_to
    from operations.status import read_status

    cluster = built(checked(name))
    access = access_to(cluster)

    def look() -> tuple[Seen, list[Text]]:
        found = read_status(cluster, access)
        return found, lines(found)

    return look


def _all() -> Look:
    from clients.access import Access, NotBuiltError
    from cluster.load import clusters, find_cluster, load_cluster
    from operations.stack import Stacks, access_to
    from operations.status import read_status
    from operations.status.fleet import read_fleet

    known: dict[str, Access] = {}

    def one(name: str, stacks: Stacks) -> Status | None:
        cluster = load_cluster(find_cluster(name, ROOT))
        if not stacks.has(cluster):
            return None
        try:
            known[name] = known.get(name) or access_to(cluster)
        except NotBuiltError:
            return None
        return read_status(cluster, known[name])

    def look() -> tuple[Seen, list[Text]]:
        stacks = Stacks()
        found = read_fleet(clusters(ROOT), lambda name: one(name, stacks))
        return found, _rows(found)

    return look


def _watch(look: Look, every_s: float, *, as_json: bool) -> None:
    """Until somebody interrupts it."""
    if as_json:
        while True:
            document = {"at": datetime.now(UTC).isoformat(timespec="seconds"), **look()[0].to_json()}
            write_out(json.dumps(document, sort_keys=True, default=str) + "\n")
            time.sleep(every_s)
    if console.is_terminal:
        with Live(Text("looking …", style="dim"), console=console, auto_refresh=False) as live:
            while True:
                live.update(Group(*look()[1], Text(f"{datetime.now():%H:%M:%S}", style="dim")), refresh=True)
                time.sleep(every_s)
    before: set[str] = set()
    while True:
        now = [line.plain for line in look()[1]]
        for line in now:
            if line not in before:
                console.print(f"{datetime.now():%H:%M:%S} {line}", markup=False)
        before = set(now)
        time.sleep(every_s)


def print_status(status: Status) -> None:
    """The status as a table that is as wide as it must be, the endpoint and the verdict last."""
    for line in lines(status):
        console.print(line)


def lines(status: Status) -> list[Text]:
    """See `print_status`."""
    groups = max((len(item.group) for item in status.items), default=0)
    names = max((len(item.name) for item in status.items), default=0)
    group, found = "", []
    for item in status.items:
        found.append(_line(item, "" if item.group == group else item.group, groups, names))
        group = item.group
    wrong = len(status.wrong)
    verdict = f"{wrong} of {len(status.items)} not ok" if wrong else "all is well"
    found.append(Text.assemble((f"{'endpoint':<{groups}}", "bold"), f"  {status.endpoint}; {verdict}"))
    return found


def _line(item: Item, group: str, groups: int, names: int) -> Text:
    mark = ("ok", "green") if item.ok else ("not ok", "red")
    line = Text.assemble((f"{group:<{groups}}", "bold"), f"  {item.name:<{names}}  ", mark)
    line.append(" " * (8 - len(mark[0])) + item.detail)
    if item.help:
        line.append(f"  → {item.help}", style="bold")
    return line


def _rows(fleet: Fleet) -> list[Text]:
    """A row a cluster."""
    names = max((len(row.cluster) for row in fleet.rows), default=0)
    return [
        Text.assemble(
            (f"{row.cluster:<{names}}", "bold"),
            "  ",
            (f"{row.state:<9}", _STATES.get(row.state, "red")),
            f"  {row.detail}",
            (f"  → {row.help}" if row.help else "", "" if row.ok else "bold"),
        )
        for row in fleet.rows
    ]
