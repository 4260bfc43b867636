"""What several verbs of the command share: arguments, options, and the examples of their help pages."""

from __future__ import annotations

from typing import Annotated

import typer

ClusterArg = Annotated[
    str, typer.Argument(metavar="CLUSTER", help="Name of a cluster in inventories/, or the path of a cluster.yaml.")
]
JsonOpt = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON document on standard output, also after a failure."),
]
LimitOpt = Annotated[
    str | None,
    typer.Option(
        "--limit", metavar="HOSTS", help="Only these workers: names or groups, with commas; as Ansible's --limit."
    ),
]
AllowUnknownOpt = Annotated[
    bool,
    typer.Option(
        "--allow-unknown", help="Only warn of regions, zones, machine types and disks that the catalogue lacks."
    ),
]
TagsOpt = Annotated[
    list[str] | None,
    typer.Option("--tags", metavar="ROLES", help="Only these roles of the workers, with commas, as in site.yml."),
]


def examples(*pairs: tuple[str, str]) -> str:
    """Commands and what each does, for the end of a help page."""
    width = max(len(command) for command, _ in pairs)
    lines = [f"./menagerie {command:<{width}}  {what}".rstrip() for command, what in pairs]
    return "\n".join(["[bold]Examples[/]", *(line.replace("[", "\\[") for line in lines)])


def words(given: list[str] | None) -> tuple[str, ...]:
    """An option that takes words with commas between them, or is given again."""
    return tuple(word for group in given or () for word in group.split(",") if word)
