"""`machines`: what a site's machines are installed from, whether they are the ones of the spec, and their installation."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from cli import exits
from cli.exits import NotConfirmedError
from cli.options import ClusterArg, JsonOpt, examples, words
from cli.output import Steps, console, errors, print_json, print_problems

if TYPE_CHECKING:
    from cluster.spec import Cluster
    from inventories.batches import Amount
    from operations.bmcs import Seen
    from operations.machines import Outcome, Plan
    from provisioning.install import Connect
    from provisioning.journal import Stage
    from provisioning.machines import Machine

CONSENT_H = 12
"""Hours for which disks that hold something may be overwritten, after `render --wipe`."""
_SHOWN = 10

app = typer.Typer(
    help="Machines from bare iron: installed by PXE or virtual media, by their BMCs. docs/provisioning.md explains it.",
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
    from provisioning.machines import machines
    from provisioning.render import tree, write

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
    from provisioning.machines import every, machines

    one, folder = _cluster(cluster)
    chosen = [machine for machine in machines(one, words(limit)) if machine.settings.bmc]
    if not chosen:
        raise MachinesError(f"no machine of {one.name} that is meant has a BMC: their sites' provisioning has no bmc")
    seen = look(chosen, tuple(every(one)), connections(one, folder, chosen))
    if as_json:
        print_json({"cluster": one.name, "machines": [each.to_json() for each in seen]})
    else:
        _print_seen(seen)
        well = sum(each.is_well for each in seen)
        console.print(f"{one.name}: {well} of {len(seen)} machines are the ones of the spec", markup=False)
    raise typer.Exit(_code(seen))


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
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; needed in scripts and with --json.")] = False,
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
    from provisioning.machines import machines

    one, folder = _cluster(cluster)
    chosen = machines(one, words(limit))
    given = (_amount(batch, "--batch", least=1), _amount(max_failures, "--max-failures", least=0))
    steps = Steps(("look",) if dry_run else ("look", "install"), quiet=as_json)
    with steps.step("look"):
        connect: Connect = connections(one, folder, chosen)
        work = plan(one, chosen, connect, again=again)
    _introduce(one.name, work, quiet=as_json)
    if dry_run:
        _conclude_dry(one.name, work, as_json=as_json)
        return
    outcome = Outcome(())
    if work.to_install:
        _confirm(one.name, work.to_install, yes=yes, as_json=as_json)
        view = _View(len(work.to_install), steps, quiet=as_json)
        with steps.step("install"):
            outcome = run(Run(one.name, connect, *given, known_hosts=known_hosts), work.to_install, view.hear)
    _conclude(one.name, work, outcome, as_json=as_json)


def _cluster(name: str) -> tuple[Cluster, Path]:
    """The cluster, and the folder that its files lie in."""
    from cli.main import ROOT, _one  # which imports this module
    from cluster.load import find_cluster

    return _one(name), find_cluster(name, ROOT).parent


def _amount(text: str | None, option: str, *, least: int) -> Amount | None:
    from inventories.batches import Amount, AmountError

    try:
        return None if text is None else Amount.parse(text, option, least=least)
    except AmountError as error:
        raise typer.BadParameter(str(error)) from None


def _print_seen(seen: Sequence[Seen]) -> None:
    """A line for each BMC that answers; then what is wrong."""
    width = max(len(each.machine.name) for each in seen)
    for each in seen:
        if each.told:
            mark, colour = ("✓", "green") if each.is_well else ("✗", "red")
            told = each.told
            line = f" {each.machine.name:<{width}}  {each.machine.rack}  {told.power:<8}{told.model} {told.serial}"
            console.print(Text.assemble((mark, colour), line.rstrip()))
    _print_unfit(seen)


def _print_unfit(seen: Sequence[Seen]) -> None:
    for each in seen:
        if each.error:
            errors.print(Text(f"{each.machine.name}: {each.error}", style="red"))
    print_problems(list(dict.fromkeys(each.problem for each in seen if each.problem)))


def _code(seen: Sequence[Seen]) -> int:
    from provisioning.redfish import Kind

    wrong = [each for each in seen if not each.is_well]
    if not wrong:
        return exits.DONE
    silent = all(each.error and each.error.kind is Kind.UNREACHABLE for each in wrong)
    return exits.UNREACHABLE if silent else exits.FAILED


def _introduce(cluster: str, work: Plan, *, quiet: bool) -> None:
    for server in work.unasked:
        errors.print(f"{server} does not answer here, so what it serves isn't compared with the spec", style="yellow")
    if quiet:
        return
    _print_unfit(work.unfit)
    told = f"{cluster}: {len(work.to_install)} machines to install"
    if work.unfit:
        told += f"; {len(work.unfit)} left alone"
    if work.left_out:
        told += f"; {len(work.left_out)} are installed already (--again takes them too)"
    errors.print(told, markup=False)


def _confirm(cluster: str, machines: Sequence[Machine], *, yes: bool, as_json: bool) -> None:
    if yes:
        return
    if as_json or not sys.stdin.isatty():
        reason = "--json asks nothing" if as_json else "no terminal to ask at"
        raise NotConfirmedError(
            f"{reason}, and nothing was touched; to overwrite the system disks of {len(machines)} machines without being "
            f"asked, add --yes; to look only, --dry-run"
        )
    names = ", ".join(machine.name for machine in machines[:_SHOWN])
    more = f" and {len(machines) - _SHOWN} more" if len(machines) > _SHOWN else ""
    errors.print(f"This turns off {names}{more} and overwrites their system disks.", style="bold", markup=False)
    errors.print("Name of the cluster, to go on: ", end="", markup=False)
    answer = sys.stdin.readline().strip()
    if answer != cluster:
        raise NotConfirmedError(f'"{answer}" is not {cluster}; nothing was touched', declined=True)


class _View:
    """Counts of machines by how far they are, and each failure when it comes."""

    def __init__(self, machines: int, steps: Steps, *, quiet: bool) -> None:
        self._machines = machines
        self._steps = steps
        self._quiet = quiet
        self._stages: dict[str, Stage] = {}

    def hear(self, machine: Machine, stage: Stage, why: str) -> None:
        """Called in the threads of machines."""
        self._stages[machine.name] = stage
        counts = Counter(list(self._stages.values()))
        told = ", ".join(f"{number} {stage}" for stage, number in counts.items())
        self._steps.detail(f"{told} of {self._machines}")
        if why and not self._quiet:
            errors.print(Text(f"     {machine.name}: {why}", style="red"))


def _conclude_dry(cluster: str, work: Plan, *, as_json: bool) -> None:
    if as_json:
        found = [each.to_json() for each in work.seen]
        names = [machine.name for machine in work.to_install]
        print_json({"cluster": cluster, "to_install": names, "left_out": list(work.left_out), "machines": found})
    else:
        for machine in work.to_install:
            way = f"by {machine.settings.media}" if machine.settings.media else "by PXE"
            hand = "" if machine.settings.bmc else ", turned on by hand"
            console.print(f"{machine.name}  {machine.rack}  {machine.address}  {way}{hand}", markup=False)
    raise typer.Exit(_code(work.seen))


def _conclude(cluster: str, work: Plan, outcome: Outcome, *, as_json: bool) -> None:
    """Print the result; machines that were left alone for what their BMC said count as failed."""
    from cli.failures import explain
    from operations.machines import NotInstalledError, whole

    total = whole(work, outcome)
    if total.succeeded:
        if as_json:
            print_json({"cluster": cluster, **total.to_json()})
        else:
            console.print(f"{cluster}: {len(total.results)} machines installed", markup=False)
        return
    error = NotInstalledError(total)
    if not as_json:
        raise error
    foreseen = explain(error)
    assert foreseen is not None
    errors.print(Text(f"error: {foreseen.text}", style="red"))
    print_json({"cluster": cluster, **total.to_json(), **foreseen.to_json()})
    raise typer.Exit(foreseen.exit_code)
