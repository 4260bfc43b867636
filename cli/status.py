"""`status`: the fleet, one cluster, or one part of it; once, or again and again.

A section of a cluster is a function of another module: it reaches the cluster once, and gives back what looks.
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
from cli.options import JsonOpt, LimitOpt, ParallelOpt, WaitOpt, WatchOpt, examples, known_clusters, words
from cli.output import console, print_json, write_out
from cli.specs import checked
from cluster.project import ROOT
from inventories.batches import Amount

if TYPE_CHECKING:
    from operations.status import Item, Status
    from operations.status.fleet import Fleet

_STATES = {"well": "green", "not built": "dim"}


class Section(StrEnum):
    """Parts of a cluster that say more of themselves than the status as a whole."""

    ETCD = "etcd"
    BACKUPS = "backups"
    KEYS = "keys"
    MACHINES = "machines"
    LINKS = "links"
    CONTROLLERS = "controllers"
    TENANCY = "tenancy"
    OPERATIONS = "operations"


@dataclass(frozen=True)
class Asked:
    """What some sections take besides the cluster."""

    last: int | None = None
    limit: tuple[str, ...] = ()
    parallel: Amount | None = None
    wait: float = 0.0


@dataclass(frozen=True)
class Looked:
    """What was seen. document: for --json. show: prints it for people."""

    code: int
    document: dict[str, Any]
    show: Callable[[], None]


Look = Callable[[], Looked]
_SECTIONS: dict[Section, tuple[str, tuple[str, ...]]] = {
    Section.ETCD: ("etcd_state", ()),
    Section.BACKUPS: ("backups", ("last", "limit")),
    Section.KEYS: ("keys", ()),
    Section.MACHINES: ("machines", ("limit",)),
    Section.LINKS: ("links", ("limit", "parallel", "wait")),
    Section.CONTROLLERS: ("controllers", ()),
    Section.TENANCY: ("tenancy", ()),
    Section.OPERATIONS: ("operations", ("last",)),
}
"""Module of `cli` with its function `section`, and which options it takes."""


@examples(
    ("status", "all clusters, a line each"),
    ("status lab", "one, with all its parts"),
    ("status lab --watch 5", "again every 5 seconds"),
    ("status jaguar etcd", "every member of both etcds"),
    ("status jaguar backups --limit main --last 50", "further back"),
    ("status jaguar keys", "key rings and certificates"),
    ("status jaguar machines --limit r07", "one rack, by its BMCs"),
    ("status jaguar operations", "who works on it"),
    ("status lab --json", "for a machine"),
)
def status(
    cluster: Annotated[
        str | None,
        typer.Argument(
            metavar="CLUSTER", help="Name or path. Without it: all of inventories/.", autocompletion=known_clusters
        ),
    ] = None,
    section: Annotated[
        Section | None, typer.Argument(metavar="SECTION", help=f"One of {', '.join(Section)}.", show_default=False)
    ] = None,
    watch: WatchOpt = None,
    limit: LimitOpt = None,
    last: Annotated[
        int | None,
        typer.Option("--last", metavar="N", min=0, help="How many past backups or operations. Default: 10."),
    ] = None,
    parallel: ParallelOpt = None,
    wait: WaitOpt = 0.0,
    as_json: JsonOpt = False,
) -> None:
    """Show the health of the fleet, of a cluster, or of one part of it. Changes nothing.

    Exit code 0 only if all is healthy. Each line that is not ok ends with the command
    that helps. docs/how-to/status.md explains every line.

    etcd: every member: leader, revisions, sizes, disks, alarms.
    backups: age, size, and what a drill of each found. --limit main or events.
    keys: key rings, and every certificate with the days it has left.
    machines: who each machine is, by its BMC, compared with the hosts file (INV-003).
    links: cards, cables and MTU of machines; 64 at a time. Names swapped cables.
    controllers: image, pods, leader, and what keeps pods from being ready.
    tenancy: namespaces of people and teams; with allocations, who has which hosts.
    operations: who works on the cluster now, and who did what to it when.

    Exit code 4 if machines, BMCs or hosts are unreachable and nothing else is wrong.
    --watch redraws on a terminal, prints what has changed elsewhere, and with
    --json prints a document per line.
    """
    look = _chosen(cluster, section, Asked(last, words(limit), parallel, wait))
    if watch:
        with suppress(KeyboardInterrupt):  # which is how a watch ends
            _watch(look, watch, as_json=as_json)
        raise typer.Exit(exits.DONE)
    seen = look()
    if as_json:
        print_json(seen.document)
    else:
        seen.show()
    raise typer.Exit(seen.code)


def _chosen(cluster: str | None, section: Section | None, asked: Asked) -> Look:
    module, takes = _SECTIONS[section] if section else ("", ())
    for field in fields(Asked):
        if getattr(asked, field.name) != field.default and field.name not in takes:
            of = " and ".join(name for name, (_, taken) in _SECTIONS.items() if field.name in taken)
            raise typer.BadParameter(f"--{field.name} is for {of}")
    if cluster is None:
        return _all()
    if section is None:
        return _one(cluster)
    found: Look = import_module(f"cli.{module}").section(cluster, asked)
    return found


def _one(name: str) -> Look:
    cluster = checked(name)
    from cli.look import built
    from operations.stack import access_to
    from operations.status import read_status

    access = access_to(built(cluster))

    def look() -> Looked:
        found = read_status(cluster, access)
        return Looked(exits.DONE if found.ok else exits.FAILED, found.to_json(), lambda: print_status(found))

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

    def look() -> Looked:
        stacks = Stacks()
        found = read_fleet(clusters(ROOT), lambda name: one(name, stacks))
        return Looked(exits.DONE if found.ok else exits.FAILED, found.to_json(), lambda: _print(_rows(found)))

    return look


def _watch(look: Look, every_s: float, *, as_json: bool) -> None:
    """Until somebody interrupts it."""
    if as_json:
        while True:
            document = {"at": datetime.now(UTC).isoformat(timespec="seconds"), **look().document}
            write_out(json.dumps(document, sort_keys=True, default=str) + "\n")
            time.sleep(every_s)
    if console.is_terminal:
        # A console of its own: what is captured of the other one must not hold what Live draws.
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


def _shown(seen: Looked) -> list[Text]:
    with console.capture() as captured:
        seen.show()
    return list(Text.from_ansi(captured.get()).split("\n"))


def _print(shown: list[Text]) -> None:
    for line in shown:
        console.print(line)


def print_status(status: Status) -> None:
    """The status as a table that is as wide as it must be, the endpoint and the verdict last."""
    _print(lines(status))


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
