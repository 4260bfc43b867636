"""`machines`: what a site's machines are installed from, whether they are the ones of the spec, and their installation."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli import machines_view
from cli.options import ClusterArg, JsonOpt, SureOpt, examples, words
from cli.output import Steps, console, errors, print_json
from cli.specs import checked
from cluster.project import ROOT
from cluster.reading import real
from cluster.writing import refuse_foreign

if TYPE_CHECKING:
    from cluster.spec import Cluster
    from inventories.batches import Amount
    from operations.provisioning.install import Connect

CONSENT_H = 12
"""Hours for which disks that hold something may be overwritten, after `render --wipe`."""

app = typer.Typer(
    help="Machines from bare iron: installed by PXE or virtual media, by their BMCs. docs/how-to/provisioning.md explains it.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

MachinesOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--limit", metavar="MACHINES", help="Only these: names, racks or sites, with commas; * and ? stand for others."
    ),
]


@app.command(
    epilog=examples(
        ("machines render jaguar -o served", "a folder a site"),
        ("machines render jaguar -o served --wipe r07", "used disks too"),
    )
)
def render(
    cluster: ClusterArg,
    folder: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", file_okay=False, help="Gets a folder for each site.")
    ],
    wipe: Annotated[
        list[str] | None,
        typer.Option(
            "--wipe",
            metavar="MACHINES",
            help=f"Let these overwrite a system disk that holds something, for {CONSENT_H} hours.",
        ),
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Write what machines fetch while they are installed, and what DHCP must say.

    For each machine, by its MAC: a script for iPXE, the installer's answers, and
    which disk it takes. Copy each site's folder to its provisioning.server.
    Nothing in it is secret. Without --wipe, only empty disks are installed on.
    Reads the spec only.
    """
    from operations.bmcs import by_site
    from operations.provisioning.machines import machines
    from operations.provisioning.render import tree, write

    one = _cluster(cluster)[0]
    all_ = machines(one)
    chosen = {machine.name for machine in machines(one, words(wipe))} if wipe else set()
    until = dict.fromkeys(chosen, int(time.time()) + CONSENT_H * 3600)
    written = {site: write(tree(own, until), folder / site) for site, own in by_site(all_).items()}
    if as_json:
        print_json({"cluster": one.name, "changed": written, "wiped": sorted(chosen)})
        return
    for site, own in by_site(all_).items():
        what = f"{written[site]} files changed" if written[site] else "nothing changed"
        told = f"{folder / site}: {len(own)} machines, {what}; copy it to {own[0].settings.server}"
        console.print(told, markup=False)
    if chosen:
        errors.print(f"disks of {len(chosen)} machines may be overwritten for {CONSENT_H} hours", style="yellow")


@app.command(
    epilog=examples(
        ("machines check jaguar", "every machine, by its BMC"),
        ("machines check jaguar --limit r07", "one rack"),
        ("machines check jaguar --json", "model, power, MACs"),
    )
)
def check(cluster: ClusterArg, limit: MachinesOpt = None, as_json: JsonOpt = False) -> None:
    """Ask each machine's BMC who the machine is, and compare it with the hosts file.

    Says which cable or card was swapped (INV-003), and which BMCs can't be
    reached or trusted. Reads only. Exit 1 where something is wrong, 4 where the
    only trouble is BMCs that do not answer.
    """
    from operations.bmcs import connections, look
    from operations.machines import MachinesError
    from operations.provisioning.machines import every, machines

    one, folder = _cluster(cluster)
    chosen = [machine for machine in machines(one, words(limit)) if machine.settings.bmc]
    if not chosen:
        raise MachinesError(f"no machine of {one.name} that is meant has a BMC: their sites' provisioning has no bmc")
    seen = look(chosen, tuple(every(one)), connections(one, folder, chosen))
    if as_json:
        print_json({"cluster": one.name, "machines": [each.to_json() for each in seen]})
    else:
        machines_view.print_seen(seen)
        well = sum(each.is_well for each in seen)
        console.print(f"{one.name}: {well} of {len(seen)} machines are the ones of the spec", markup=False)
    raise typer.Exit(machines_view.code(seen))


@app.command(
    epilog=examples(
        ("machines install jaguar --limit r07 --dry-run", "only look"),
        ("machines install jaguar --limit r07", "one rack; asks"),
        ("machines install jaguar --yes --json", "for scripts"),
    )
)
def install(
    cluster: ClusterArg,
    limit: MachinesOpt = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Look and compare, and change nothing.")] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Also what is installed already, or a node of the cluster.")
    ] = False,
    batch: Annotated[
        str | None, typer.Option("--batch", metavar="N|P%", help="Machines at a time; the next begin when all ended.")
    ] = None,
    max_failures: Annotated[
        str | None,
        typer.Option("--max-failures", metavar="N|P%", help="Begin no batch after more machines than this failed."),
    ] = None,
    known_hosts: Annotated[
        Path, typer.Option("--known-hosts", metavar="FILE", help="Where machines' new SSH host keys are written.")
    ] = Path("~/.ssh/known_hosts"),
    yes: SureOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Install machines from nothing. Their system disks are overwritten; asks for the cluster's name.

    Each is turned off, booted once from the network or an image, heard while
    it is installed, started from its disk, and met by SSH. Those whose BMC is
    another's are left alone (INV-003). Safe to interrupt: run it again and it
    goes on. Exit 0 all done, 1 some failed, 4 BMCs could not be reached and
    nothing else failed.
    """
    from operations.bmcs import connections
    from operations.machines import Outcome, Run, plan
    from operations.machines import install as run
    from operations.provisioning.known_hosts import KIND
    from operations.provisioning.machines import machines

    refuse_foreign(real(known_hosts.expanduser()), *KIND)
    one, folder = _cluster(cluster)
    chosen = machines(one, words(limit))
    given = (_amount(batch, "--batch", least=1), _amount(max_failures, "--max-failures", least=0))
    steps = Steps(("look",) if dry_run else ("look", "install"), quiet=as_json)
    with steps.step("look"):
        connect: Connect = connections(one, folder, chosen)
        work = plan(one, chosen, connect, again=again)
    machines_view.introduce(one.name, work, quiet=as_json)
    if dry_run:
        machines_view.conclude_dry(one.name, work, as_json=as_json)
        return
    outcome = Outcome(())
    if work.to_install:
        machines_view.confirm(one.name, work.to_install, yes=yes, as_json=as_json)
        view = machines_view.View(len(work.to_install), steps, quiet=as_json)
        with steps.step("install"):
            outcome = run(Run(one.name, connect, *given, known_hosts=known_hosts), work.to_install, view.hear)
    machines_view.conclude(one.name, work, outcome, as_json=as_json)


def _cluster(name: str) -> tuple[Cluster, Path]:
    """The cluster, and the folder that its files lie in."""
    from cluster.load import find_cluster

    return checked(name), find_cluster(name, ROOT).parent


def _amount(text: str | None, option: str, *, least: int) -> Amount | None:
    from inventories.batches import Amount, AmountError

    try:
        return None if text is None else Amount.parse(text, option, least=least)
    except AmountError as error:
        raise typer.BadParameter(str(error)) from None
