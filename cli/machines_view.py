"""What `machines` prints: who machines are, what an installation is about to do, how far it is, and how it ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer
from rich.text import Text

from cli import exits
from cli.asking import confirm_name
from cli.output import Steps, console, errors, print_json, print_problems

if TYPE_CHECKING:
    from operations.bmcs import Seen
    from operations.machines import Outcome, Plan
    from operations.provisioning.journal import Stage
    from operations.provisioning.machines import Machine

_SHOWN = 10


def print_all(cluster: str, seen: Sequence[Seen]) -> None:
    """Who all machines are, and how many are the ones of the spec."""
    _print_seen(seen)
    well = sum(each.is_well for each in seen)
    console.print(f"{cluster}: {well} of {len(seen)} machines are the ones of the spec", markup=False)


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


def code(seen: Sequence[Seen]) -> int:
    """The exit code: 4 where BMCs that do not answer are the only trouble."""
    from operations.provisioning.redfish import Kind

    wrong = [each for each in seen if not each.is_well]
    if not wrong:
        return exits.DONE
    silent = all(each.error and each.error.kind is Kind.UNREACHABLE for each in wrong)
    return exits.UNREACHABLE if silent else exits.FAILED


def introduce(cluster: str, work: Plan, *, quiet: bool) -> None:
    """What is to be installed, and what is not, and why."""
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


def confirm(cluster: str, machines: Sequence[Machine], *, yes: bool, as_json: bool) -> None:
    """Ask for the cluster's name. Raises NotConfirmedError without it."""
    if yes:
        return
    what = f"overwrite the system disks of {len(machines)} machines"
    names = ", ".join(machine.name for machine in machines[:_SHOWN])
    more = f" and {len(machines) - _SHOWN} more" if len(machines) > _SHOWN else ""
    warning, again = f"This turns off {names}{more} and overwrites their system disks.", f"machines install {cluster}"
    confirm_name(warning, cluster, again, to=what, see=("which", f"{again} --dry-run"), as_json=as_json)


class View:
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


def conclude_dry(cluster: str, work: Plan, *, as_json: bool) -> None:
    """Print what would be installed, and end the command."""
    if as_json:
        found = [each.to_json() for each in work.seen]
        names = [machine.name for machine in work.to_install]
        print_json({"cluster": cluster, "to_install": names, "left_out": list(work.left_out), "machines": found})
    else:
        for machine in work.to_install:
            way = f"by {machine.settings.media}" if machine.settings.media else "by PXE"
            hand = "" if machine.settings.bmc else ", turned on by hand"
            console.print(f"{machine.name}  {machine.rack}  {machine.address}  {way}{hand}", markup=False)
    raise typer.Exit(code(work.seen))


def conclude(cluster: str, work: Plan, outcome: Outcome, *, as_json: bool) -> None:
    """Print the result; machines that were left alone for what their BMC said count as failed."""
    from cli.failures import explain
    from operations.machines import not_installed, whole

    total = whole(work, outcome)
    if total.succeeded:
        if as_json:
            print_json({"cluster": cluster, **total.to_json()})
        else:
            console.print(f"{cluster}: {len(total.results)} machines installed", markup=False)
        return
    error = not_installed(total)
    if not as_json:
        raise error
    foreseen = explain(error)
    assert foreseen is not None
    errors.print(Text(f"error: {foreseen.text}", style="red"))
    print_json({"cluster": cluster, **total.to_json(), **foreseen.to_json()})
    raise typer.Exit(foreseen.exit_code)
