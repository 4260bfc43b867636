"""`machines render` and `install`, and `status CLUSTER machines`: compares machines with the spec."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli import machines_view
from cli.options import (
    ClusterArg,
    DryOpt,
    JsonOpt,
    LimitOpt,
    MaxFailuresOpt,
    OutputOpt,
    ParallelOpt,
    YesOpt,
    examples,
    folder_of,
    words,
)
from cli.output import Steps, console, errors, print_json
from cli.specs import checked
from cli.status import Look, Options, Report
from cluster.project import ROOT
from cluster.reading import real
from cluster.writing import refuse_foreign

if TYPE_CHECKING:
    from cluster.spec import Cluster
    from operations.provisioning.install import Connect

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
    loaded = _cluster(cluster)[0]
    from operations.bmcs import by_site
    from operations.provisioning.machines import machines
    from operations.provisioning.render import tree, write

    folder = folder_of(output)
    all_ = machines(loaded)
    chosen = {machine.name for machine in machines(loaded, words(wipe))} if wipe else set()
    until = dict.fromkeys(chosen, int(time.time()) + CONSENT_H * 3600)
    written = {site: write(tree(own, until), folder / site, dry_run=dry_run) for site, own in by_site(all_).items()}
    if as_json:
        print_json(
            {
                "cluster": loaded.name,
                "changed": written,
                "wiped": sorted(chosen),
                **({"dry_run": True} if dry_run else {}),
            }
        )
        return
    change, may = ("would change", "could") if dry_run else ("changed", "may")
    for site, own in by_site(all_).items():
        what = f"{written[site]} files {change}" if written[site] else f"nothing {change}"
        further = "" if dry_run else f"; copy it to {own[0].settings.server}"
        console.print(f"{folder / site}: {len(own)} machines, {what}{further}", markup=False)
    if chosen:
        errors.print(f"disks of {len(chosen)} machines {may} be overwritten for {CONSENT_H} hours", style="yellow")


def section(cluster: str, options: Options) -> Look:
    """Ask each machine's BMC for the machine's identity, and compare it with the hosts file."""
    loaded, folder = _cluster(cluster)
    from operations.bmcs import connections, read_all
    from operations.machines import MachinesError
    from operations.provisioning.machines import every, machines

    chosen = [machine for machine in machines(loaded, options.limit) if machine.settings.bmc]
    if not chosen:
        raise MachinesError(f"no selected machine of {loaded.name} has a BMC: their sites' provisioning has no bmc")
    connect = connections(loaded, folder, chosen)

    def look_once() -> Report:
        reports = read_all(chosen, tuple(every(loaded)), connect)
        document = {"cluster": loaded.name, "machines": [report.to_json() for report in reports]}
        return Report(machines_view.code(reports), document, lambda: machines_view.print_all(loaded.name, reports))

    return look_once


@examples(
    ("machines install jaguar --limit r07 --dry-run", "show the machines"),
    ("machines install jaguar --limit r07", "one rack; asks first"),
    ("machines install jaguar --yes --json", "for a program"),
)
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
    loaded, folder = _cluster(cluster)
    from operations.bmcs import connections
    from operations.machines import InstallOutcome, Run, plan
    from operations.machines import install as run
    from operations.provisioning.known_hosts import KIND
    from operations.provisioning.machines import machines

    refuse_foreign(real(known_hosts.expanduser()), *KIND)
    chosen = machines(loaded, words(limit))
    steps = Steps(("look",) if dry_run else ("look", "install"), quiet=as_json)
    with steps.step("look"):
        connect: Connect = connections(loaded, folder, chosen)
        work = plan(loaded, chosen, connect, again=again)
    machines_view.introduce(loaded.name, work, quiet=as_json)
    if dry_run:
        machines_view.conclude_dry(loaded.name, work, as_json=as_json)
        return
    outcome = InstallOutcome(())
    if work.to_install:
        machines_view.confirm(loaded.name, work.to_install, yes=yes, as_json=as_json)
        view = machines_view.View(len(work.to_install), steps, quiet=as_json)
        with steps.step("install"):
            outcome = run(
                Run(loaded.name, connect, parallel, max_failures, known_hosts=known_hosts), work.to_install, view.hear
            )
    machines_view.conclude(loaded.name, work, outcome, as_json=as_json)


def _cluster(name: str) -> tuple[Cluster, Path]:
    """Return the cluster, and the folder of its files."""
    from cluster.load import find_cluster

    return checked(name), find_cluster(name, ROOT).parent
