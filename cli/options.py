"""What verbs share: arguments and options.

An option has the same name, metavar and help text in every verb.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from cluster.project import ROOT
from inventories.batches import Amount, AmountError

_TIME = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d|)")
_UNITS_S = {"ms": 0.001, "": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_MANY = "separated by commas, or repeated"


def known_clusters(incomplete: str) -> list[str]:
    """Return clusters for a shell's completion."""
    from cluster.load import clusters  # noqa: PLC0415 - time: 0.2 s for the model, which not every help page needs

    return [name for name in clusters(ROOT) if name.startswith(incomplete)]


def seconds(given: str | float) -> float:
    """Parse a time: plain seconds, or 90s, 15m, 2h, 7d."""
    match = _TIME.fullmatch(str(given))
    if not match:
        raise typer.BadParameter(f"{given!r} is not a time; write seconds, or 90s, 15m, 2h or 7d")
    return float(match[1]) * _UNITS_S[match[2]]


def pause(given: str | float) -> float:
    """Parse a time of at least a second."""
    if (parsed := seconds(given)) < 1:
        raise typer.BadParameter(f"{given!r} is too short; the minimum is one second")
    return parsed


def _amount(least: int) -> Callable[[str | Amount], Amount]:
    def amount(given: str | Amount) -> Amount:
        try:
            return given if isinstance(given, Amount) else Amount.parse(given, least=least)
        except AmountError as error:
            raise typer.BadParameter(str(error)) from None

    return amount


ClusterArg = Annotated[
    str,
    typer.Argument(
        metavar="CLUSTER",
        help="Name of a cluster in inventories/, or the path of a cluster.yaml.",
        autocompletion=known_clusters,
    ),
]
ClustersArg = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="CLUSTER",
        help="Names or paths of clusters. Default: all in inventories/.",
        autocompletion=known_clusters,
    ),
]
JsonOpt = Annotated[bool, typer.Option("--json", help="Print JSON on standard output, even after a failure.")]
YesOpt = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation; for scripts.")]
DryOpt = Annotated[bool, typer.Option("--dry-run", help="Show what would change; change nothing.")]
DiffOpt = Annotated[bool, typer.Option("--diff", help="Show how files differ.")]
CertOpt = Annotated[Path | None, typer.Option("--cert", help="The server's certificate, in PEM.")]
KeyOpt = Annotated[Path | None, typer.Option("--key", help="The certificate's key, in PEM.")]
LimitOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        metavar="HOSTS",
        help=f"Only these hosts: names, groups such as racks, or patterns with *; {_MANY}.",
    ),
]
TagsOpt = Annotated[
    list[str] | None,
    typer.Option("--tags", metavar="ROLES", help=f"Only these roles of site.yml; {_MANY}."),
]
OnlyOpt = Annotated[list[str] | None, typer.Option("--only", metavar="NAMES", help=f"Only these, by name; {_MANY}.")]
TeamOpt = Annotated[
    str,
    typer.Option(
        "--team", metavar="TEAM", help="Count for this team: only its use; for a job, also hosts allocated to it."
    ),
]
AllowUnknownOpt = Annotated[
    bool,
    typer.Option("--allow-unknown", help="Only warn if the catalogue lacks a region, zone, machine type or disk."),
]
ParallelOpt = Annotated[
    Amount | None,
    typer.Option(
        "--parallel", metavar="N|P%", parser=_amount(1), help="How many at a time: a number, or a share of all."
    ),
]
MaxFailuresOpt = Annotated[
    Amount | None,
    typer.Option(
        "--max-failures",
        metavar="N|P%",
        parser=_amount(0),
        help="Stop starting batches after more failures than this.",
    ),
]
WatchOpt = Annotated[
    float | None,
    typer.Option("--watch", metavar="SECONDS", parser=pause, help="Repeat at this interval, such as 5 or 1m."),
]
WaitOpt = Annotated[
    float,
    typer.Option(
        "--wait",
        metavar="SECONDS",
        parser=seconds,
        show_default=False,
        help="Wait this long while another operation holds the cluster's lock, such as 90 or 15m.",
    ),
]
SettleOpt = Annotated[
    float,
    typer.Option(
        "--settle",
        metavar="SECONDS",
        parser=seconds,
        show_default=False,
        help="links: wait this long for LLDP from switches, which send it every 30 s; such as 35 or 1m.",
    ),
]
WithoutRecordOpt = Annotated[
    bool,
    typer.Option(
        "--without-record",
        help="Continue although the bucket of records does not answer. Nothing then locks out other operators.",
    ),
]
OutputOpt = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="PATH", help="File or folder to write to.", show_default=False)
]
FactsOpt = Annotated[
    Path | None,
    typer.Option(
        "--facts", metavar="PATH", exists=True, help="Facts of switches (a file) or storage hosts (a folder)."
    ),
]

# How nodes are drained; `cli.actions.draining` makes rules of them.
DrainTimeoutOpt = Annotated[
    float,
    typer.Option(
        "--drain-timeout",
        metavar="SECONDS",
        parser=seconds,
        show_default=False,
        help="Time-out for draining a node. Default: 15m.",
    ),
]
ReadyTimeoutOpt = Annotated[
    float,
    typer.Option(
        "--ready-timeout",
        metavar="SECONDS",
        parser=seconds,
        show_default=False,
        help="Time-out for a node to be Ready again.",
    ),
]
EvictUnmanagedOpt = Annotated[
    bool, typer.Option("--evict-unmanaged", help="Also evict pods that no controller recreates. They are lost.")
]
KeepEmptyDirOpt = Annotated[
    bool, typer.Option("--keep-empty-dir", help="Refuse to evict pods that keep files on their node (emptyDir).")
]
WaitForJobsOpt = Annotated[
    bool, typer.Option("--wait-for-jobs", help="Evict no pod of a Job: wait until it has finished.")
]


def folder_of(output: Path | None) -> Path:
    """Return --output of a verb that writes a folder. Errors: raises BadParameter if it is missing or a file."""
    if output is None:
        raise typer.BadParameter("give --output FOLDER, the folder to write to")
    if output.is_file():
        raise typer.BadParameter(f"--output: {output} is a file; name a folder")
    return output


def pair(cert: Path | None, key: Path | None) -> tuple[Path, Path] | None:
    """Return --cert and --key, None without both. Errors: raises BadParameter for one alone."""
    if (cert is None) != (key is None):
        raise typer.BadParameter("give --cert and --key together; without TLS, give neither")
    return (cert, key) if cert and key else None


def words(values: list[str] | None) -> tuple[str, ...]:
    """Split an option's words, separated by commas or given by repeating the option."""
    return tuple(word for group in values or () for word in group.split(",") if word)


def pattern(values: list[str] | None) -> str | None:
    """Return --limit in the form that ansible-playbook takes."""
    return ",".join(values) if values else None
