"""`machines render` and `machines install`: their arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.examples import examples
from cli.holding import holds
from cli.options import (
    ClusterArg,
    DryOpt,
    JsonOpt,
    LimitOpt,
    MaxFailuresOpt,
    OutputOpt,
    ParallelOpt,
    YesOpt,
    folder_of,
    words,
)
from cli.specs import checked, cluster_folder

CONSENT_H = 12
"""Hours after `render --wipe` during which disks that are not empty may be overwritten."""


@examples(
    ("machines render jaguar -o served", "a folder per site"),
    ("machines render jaguar -o served --wipe r07", "overwrite used disks"),
    ("machines render jaguar -o served --dry-run", "show what would change"),
)
def render(
    cluster: ClusterArg,
    output: OutputOpt = None,
    wipe: Annotated[
        list[str] | None,
        typer.Option(
            "--wipe",
            metavar="MACHINES",
            help=f"Let these overwrite a system disk that is not empty, for {CONSENT_H} hours; separated by commas, or repeated.",
        ),
    ] = None,
    dry_run: DryOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Write the files that machines fetch during installation, and the DHCP settings.

    --output gets a folder per site. For each machine, named by its MAC, it has an
    iPXE script, the installer's answers, and the disk to install on. Copy each
    site's folder to its provisioning.server. Nothing in it is secret. Without
    --wipe, the installer uses only empty disks. Reads the spec only.
    """
    loaded = checked(cluster)
    folder = folder_of(output)
    from cli.actions import machines

    machines.render(loaded, folder, words(wipe), CONSENT_H, dry_run=dry_run, as_json=as_json)


@examples(
    ("machines install jaguar --limit r07 --dry-run", "show the machines"),
    ("machines install jaguar --limit r07", "one rack; asks first"),
    ("machines install jaguar --yes --json", "for a program"),
)
@holds()
def install(
    cluster: ClusterArg,
    limit: LimitOpt = None,
    again: Annotated[
        bool, typer.Option("--again", help="Include machines that are already installed, or are nodes of the cluster.")
    ] = False,
    parallel: ParallelOpt = None,
    max_failures: MaxFailuresOpt = None,
    known_hosts: Annotated[
        Path, typer.Option("--known-hosts", metavar="FILE", help="File for the machines' new SSH host keys.")
    ] = Path("~/.ssh/known_hosts"),
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Install machines from bare metal. Overwrites their system disks; asks for the cluster's name.

    Each machine is turned off, boots once from the network or an image, reports
    while it is installed, boots from its disk, and is checked by SSH. If a BMC
    belongs to another machine than the spec says, that machine is skipped
    (INV-003). --parallel sets the size of a batch; a batch starts when the one
    before is done.

    Idempotent: if interrupted, run it again. With --json, --yes is needed too.
    Exit code 1 if machines failed, 4 if BMCs are unreachable and nothing else
    failed.
    """
    loaded = checked(cluster)
    from cli.actions import machines

    machines.install(
        loaded,
        cluster_folder(cluster),
        words(limit),
        again=again,
        parallel=parallel,
        max_failures=max_failures,
        known_hosts=known_hosts,
        dry_run=dry_run,
        yes=yes,
        as_json=as_json,
    )
