"""`status`: its arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Annotated

import typer

from cli.examples import examples
from cli.options import JsonOpt, LimitOpt, ParallelOpt, SettleOpt, WatchOpt, known_clusters, words
from cli.sections import OPTIONS, Look, Options, Section
from cli.specs import built, checked, cluster_folder
from cluster.spec import Cluster


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
    options = Options(last, words(limit), parallel, settle)
    _refuse_foreign(section, options)
    look = _look(cluster, section, options)
    from cli.actions import looking

    looking.show(look, watch, as_json=as_json)


def _refuse_foreign(section: Section | None, options: Options) -> None:
    """Raise BadParameter if an option is for another section."""
    for field in fields(Options):
        takes = OPTIONS[section] if section else ()
        if getattr(options, field.name) != field.default and field.name not in takes:
            sections = " and ".join(name for name, names in OPTIONS.items() if field.name in names)
            raise typer.BadParameter(f"--{field.name} is for {sections}")


def _look(name: str | None, section: Section | None, options: Options) -> Look:
    if name is not None and section:
        cluster = checked(name)
        return _section(section)(cluster, cluster_folder(name), options)
    loaded = None if name is None else built(name)
    from cli.actions import status

    return status.cluster(loaded) if loaded else status.fleet()


def _section(name: Section) -> Callable[[Cluster, Path, Options], Look]:
    """Import only what the section needs: together they take 0.5 s more, and one needs an extra package."""
    match name:
        case Section.ETCD:
            from cli.actions import etcd_state

            return etcd_state.section
        case Section.BACKUPS:
            from cli.actions import backups

            return backups.section
        case Section.KEYS:
            from cli.actions import keys

            return keys.section
        case Section.MACHINES:
            from cli.actions import machines

            return machines.section
        case Section.LINKS:
            from cli.actions import links

            return links.section
        case Section.CONTROLLERS:
            from cli.actions import controllers

            return controllers.section
        case Section.TENANCY:
            from cli.actions import tenancy

            return tenancy.section
        case Section.OPERATIONS:
            from cli.actions import operations

            return operations.section
