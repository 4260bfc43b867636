"""What several verbs of the command share: arguments, options, and the examples of their help pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from operations.drain import Rules

ClusterArg = Annotated[
    str, typer.Argument(metavar="CLUSTER", help="Name of a cluster in inventories/, or the path of a cluster.yaml.")
]
JsonOpt = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON document on standard output, also after a failure."),
]
YesOpt = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; for scripts. --json does not ask either.")]
SureOpt = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; needed in scripts and with --json.")]
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
DryOpt = Annotated[bool, typer.Option("--dry-run", help="Refuse what would be refused, say what would be done, stop.")]
WithoutRecordOpt = Annotated[
    bool,
    typer.Option(
        "--without-record",
        help="Go on although the bucket of records does not answer: nothing then keeps another operator out.",
    ),
]

# What may become of the pods of a node that is drained: operations.drain.Rules.
DrainTimeoutOpt = Annotated[
    str, typer.Option("--drain-timeout", metavar="TIME", help="For a node's pods to be gone, in this run.")
]
EvictUnmanagedOpt = Annotated[
    bool, typer.Option("--evict-unmanaged", help="Also evict pods that nothing makes anew: they are lost.")
]
KeepEmptyDirOpt = Annotated[
    bool, typer.Option("--keep-empty-dir", help="Refuse to evict pods that keep files on their node (emptyDir).")
]
WaitForJobsOpt = Annotated[
    bool, typer.Option("--wait-for-jobs", help="Evict no pod of a Job: wait until it has finished.")
]


def drain_rules(
    timeout: str, evict_unmanaged: bool = False, keep_empty_dir: bool = False, wait_for_jobs: bool = False
) -> Rules:
    """What these options say together."""
    from operations.drain import Rules

    return Rules(seconds(timeout, "--drain-timeout"), evict_unmanaged, not keep_empty_dir, wait_for_jobs)


def examples(*pairs: tuple[str, str]) -> str:
    """Commands and what each does, for the end of a help page."""
    width = max(len(command) for command, _ in pairs)
    lines = [f"./menagerie {command:<{width}}  {what}".rstrip() for command, what in pairs]
    return "\n".join(["[bold]Examples[/]", *(line.replace("[", "\\[") for line in lines)])


def words(given: list[str] | None) -> tuple[str, ...]:
    """An option that takes words with commas between them, or is given again."""
    return tuple(word for group in given or () for word in group.split(",") if word)


def seconds(text: str, option: str) -> float:
    """An option that takes a time: 90s, 15m, 2h or 7d."""
    from pydantic_core import PydanticCustomError

    from cluster.quantities import parse_duration_ms

    try:
        return float(parse_duration_ms(text)) / 1000
    except PydanticCustomError as error:
        raise typer.BadParameter(f"{option}: {error.message()}; write 90s, 15m, 2h or 7d") from None
