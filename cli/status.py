"""`status`: the fleet, one cluster, or one part of it; once or repeatedly.

A section is a function in another module. It connects to the cluster once and returns a function that looks.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group
from rich.live import Live
from rich.text import Text

from cli import exits
from cli.options import JsonOpt, LimitOpt, ParallelOpt, SettleOpt, WatchOpt, examples, known_clusters, words
from cli.output import console, print_json, write_out
from cli.specs import checked
from cluster.project import ROOT
from inventories.batches import Amount

if TYPE_CHECKING:
    from operations.status import Status, StatusItem
    from operations.status.fleet import FleetStatus

_STATES = {"well": "green", "not built": "dim"}


class Section(StrEnum):
    """Parts of a cluster with a more detailed status."""

    ETCD = "etcd"
    BACKUPS = "backups"
    KEYS = "keys"
    MACHINES = "machines"
    LINKS = "links"
    CONTROLLERS = "controllers"
    TENANCY = "tenancy"
    OPERATIONS = "operations"


@dataclass(frozen=True)
class Options:
    """Options that some sections take."""

    last: int | None = None
    limit: tuple[str, ...] = ()
    parallel: Amount | None = None
    settle: float = 0.0


@dataclass(frozen=True)
class Report:
    """The result of a look. document: for --json. show: prints it for people."""

    code: int
    document: dict[str, Any]
    show: Callable[[], None]


Look = Callable[[], Report]
_SECTIONS: dict[Section, tuple[str, tuple[str, ...]]] = {
    Section.ETCD: ("etcd_state", ()),
    Section.BACKUPS: ("backups", ("last", "limit")),
    Section.KEYS: ("keys", ()),
    Section.MACHINES: ("machines", ("limit",)),
    Section.LINKS: ("links", ("limit", "parallel", "settle")),
    Section.CONTROLLERS: ("controllers", ()),
    Section.TENANCY: ("tenancy", ()),
    Section.OPERATIONS: ("operations", ("last",)),
}
"""Section -> the module of `cli` with its function `section`, and the options it takes."""


@examples(
    ("status", "all clusters, a line each"),
    ("status lab", "one cluster and all its parts"),
    ("status lab --watch 5", "repeat every 5 seconds"),
    ("status jaguar etcd", "every member of both etcds"),
    ("status jaguar backups --limit main --last 50", "more backups"),
    ("status jaguar keys", "key rings and certificates"),
    ("status jaguar machines --limit r07", "one rack, by its BMCs"),
    ("status jaguar operations", "who works on it"),
    ("status lab --json", "for a program"),
)
def status(
    cluster: Annotated[
        str | None,
        typer.Argument(
            metavar="CLUSTER",
            help="Name or path of a cluster. Default: all in inventories/.",
            autocompletion=known_clusters,
        ),
    ] = None,
    section: Annotated[
        Section | None, typer.Argument(metavar="SECTION", help=f"One of {', '.join(Section)}.", show_default=False)
    ] = None,
    watch: WatchOpt = None,
    limit: LimitOpt = None,
    last: Annotated[
        int | None,
        typer.Option("--last", metavar="N", min=0, help="Number of past backups or operations. Default: 10."),
    ] = None,
    parallel: ParallelOpt = None,
    settle: SettleOpt = 0.0,
    as_json: JsonOpt = False,
) -> None:
    """Show the health of the fleet, of a cluster, or of one part of it. Changes nothing.

    Exit code 0 only if all is healthy. Each line that is not ok ends with the
    command that helps. docs/how-to/status.md explains every line.

    etcd: every member, with leader, revisions, sizes, disks and alarms.
    backups: age, size, and drill result of each. --limit main or events.
    keys: key rings, and every certificate with the days left.
    machines: each machine's identity from its BMC, compared with the hosts file
    (INV-003).
    links: cards, cables and MTU of machines; 64 at a time. Names swapped cables.
    controllers: image, pods, leader, and what keeps pods from being ready.
    tenancy: namespaces of people and teams; with allocations, each team's hosts.
    operations: who works on the cluster now, and past operations.

    Exit code 4 if machines, BMCs or hosts are unreachable and nothing else is
    wrong. --watch redraws on a terminal. Elsewhere it prints only changed lines,
    and with --json a document per line.
    """
    look = _chosen(cluster, section, Options(last, words(limit), parallel, settle))
    if watch:
        with suppress(KeyboardInterrupt):  # a watch ends this way
            _watch(look, watch, as_json=as_json)
        raise typer.Exit(exits.DONE)
    looked = look()
    if as_json:
        print_json(looked.document)
    else:
        looked.show()
    raise typer.Exit(looked.code)


def _chosen(cluster: str | None, section: Section | None, options: Options) -> Look:
    module, takes = _SECTIONS[section] if section else ("", ())
    for field in fields(Options):
        if getattr(options, field.name) != field.default and field.name not in takes:
            sections = " and ".join(name for name, (_, taken) in _SECTIONS.items() if field.name in taken)
            raise typer.BadParameter(f"--{field.name} is for {sections}")
    if cluster is None:
        return _fleet()
    if section is None:
        return _cluster(cluster)
    section_look: Look = import_module(f"cli.{module}").section(cluster, options)
    return section_look


def _cluster(name: str) -> Look:
    cluster = checked(name)
    from cli.look import built
    from operations.stack import access_to
    from operations.status import read_status

    access = access_to(built(cluster))

    def look() -> Report:
        status_ = read_status(cluster, access)
        return Report(exits.DONE if status_.ok else exits.FAILED, status_.to_json(), lambda: print_status(status_))

    return look


def _fleet() -> Look:
    from clients.access import Access, NotBuiltError
    from cluster.load import clusters, find_cluster, load_cluster
    from operations.stack import Stacks, access_to
    from operations.status import read_status
    from operations.status.fleet import read_fleet

    accesses: dict[str, Access] = {}

    def read(name: str, stacks: Stacks) -> Status | None:
        cluster = load_cluster(find_cluster(name, ROOT))
        if not stacks.has(cluster):
            return None
        try:
            accesses[name] = accesses.get(name) or access_to(cluster)
        except NotBuiltError:
            return None
        return read_status(cluster, accesses[name])

    def look() -> Report:
        stacks = Stacks()
        fleet = read_fleet(clusters(ROOT), lambda name: read(name, stacks))
        return Report(exits.DONE if fleet.ok else exits.FAILED, fleet.to_json(), lambda: _print(_rows(fleet)))

    return look


def _watch(look: Look, every_s: float, *, as_json: bool) -> None:
    """Look and print until interrupted."""
    if as_json:
        while True:
            document = {"at": datetime.now(UTC).isoformat(timespec="seconds"), **look().document}
            write_out(json.dumps(document, sort_keys=True, default=str) + "\n")
            time.sleep(every_s)
    if console.is_terminal:
        # A separate console, so that capturing the other one does not capture what Live draws.
        screen = type(console)(highlight=False, soft_wrap=True)
        waiting = Text("looking …", style="dim")
        with Live(waiting, console=screen, auto_refresh=False, redirect_stdout=False) as live:
            while True:
                live.update(Group(*_shown(look()), Text(f"{datetime.now():%H:%M:%S}", style="dim")), refresh=True)
                time.sleep(every_s)
    before: set[str] = set()
    while True:
        now = [line.plain for line in _shown(look())]
        for line in now:
            if line not in before:
                console.print(f"{datetime.now():%H:%M:%S} {line}", markup=False)
        before = set(now)
        time.sleep(every_s)


def _shown(looked: Report) -> list[Text]:
    with console.capture() as captured:
        looked.show()
    return list(Text.from_ansi(captured.get()).split("\n"))


def _print(shown: list[Text]) -> None:
    for line in shown:
        console.print(line)


def print_status(status: Status) -> None:
    """Print the status as a table, with the endpoint and the verdict last."""
    _print(lines(status))


def lines(status: Status) -> list[Text]:
    """Return the lines of `print_status`."""
    groups = max((len(item.group) for item in status.items), default=0)
    names = max((len(item.name) for item in status.items), default=0)
    group, rows = "", []
    for item in status.items:
        rows.append(_line(item, "" if item.group == group else item.group, groups, names))
        group = item.group
    bad = len(status.wrong)
    verdict = f"{bad} of {len(status.items)} not ok" if bad else "all healthy"
    rows.append(Text.assemble((f"{'endpoint':<{groups}}", "bold"), f"  {status.endpoint}; {verdict}"))
    return rows


def _line(item: StatusItem, group: str, groups: int, names: int) -> Text:
    mark = ("ok", "green") if item.ok else ("not ok", "red")
    line = Text.assemble((f"{group:<{groups}}", "bold"), f"  {item.name:<{names}}  ", mark)
    line.append(" " * (8 - len(mark[0])) + item.detail)
    if item.help:
        line.append(f"  → {item.help}", style="bold")
    return line


def _rows(fleet: FleetStatus) -> list[Text]:
    """Return a row per cluster."""
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
