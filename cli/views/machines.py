"""The output of `machines`: identities, and an installation's plan, progress and result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import typer
from rich.text import Text

from cli import exits
from cli.asking import confirm_name
from cli.failures import explain
from cli.output import Steps, console, errors, print_json, print_problems
from operations.bmcs import BmcReading
from operations.machines import InstallOutcome, InstallPlan, not_installed, whole
from operations.provisioning.journal import InstallStage
from operations.provisioning.machines import SiteMachine
from operations.provisioning.redfish import BmcErrorKind

_SHOWN = 10


def print_all(cluster: str, reports: Sequence[BmcReading]) -> None:
    """Print all machines' identities, and how many match the spec."""
    _print_identities(reports)
    matching = sum(machine.is_healthy for machine in reports)
    console.print(f"{cluster}: {matching} of {len(reports)} machines match the spec", markup=False)


def _print_identities(reports: Sequence[BmcReading]) -> None:
    """Print a line per BMC that answers, then the problems."""
    width = max(len(report.machine.name) for report in reports)
    for report in reports:
        if report.report:
            mark, colour = ("✓", "green") if report.is_healthy else ("✗", "red")
            identity = report.report
            line = f" {report.machine.name:<{width}}  {report.machine.rack}  {identity.power:<8}{identity.model} {identity.serial}"
            console.print(Text.assemble((mark, colour), line.rstrip()))
    _print_unfit(reports)


def _print_unfit(reports: Sequence[BmcReading]) -> None:
    for report in reports:
        if report.error:
            errors.print(Text(f"{report.machine.name}: {report.error}", style="red"))
    print_problems(list(dict.fromkeys(report.problem for report in reports if report.problem)))


def code(reports: Sequence[BmcReading]) -> int:
    """Return the exit code: 4 if silent BMCs are the only problem."""
    unfit = [report for report in reports if not report.is_healthy]
    if not unfit:
        return exits.DONE
    silent = all(report.error and report.error.kind is BmcErrorKind.UNREACHABLE for report in unfit)
    return exits.UNREACHABLE if silent else exits.FAILED


def introduce(cluster: str, work: InstallPlan, *, quiet: bool) -> None:
    """Print which machines will be installed, which will not, and why."""
    for server in work.unasked:
        errors.print(f"{server} does not answer from here, so its files are not compared with the spec", style="yellow")
    if quiet:
        return
    _print_unfit(work.unfit)
    line = f"{cluster}: {len(work.to_install)} machines to install"
    if work.unfit:
        line += f"; {len(work.unfit)} skipped"
    if work.left_out:
        line += f"; {len(work.left_out)} are already installed (--again includes them)"
    errors.print(line, markup=False)


def confirm(cluster: str, machines: Sequence[SiteMachine], *, yes: bool, as_json: bool) -> None:
    """Ask for the cluster's name. Errors: raises NotConfirmedError without it."""
    if yes:
        return
    what = f"overwrite the system disks of {len(machines)} machines"
    names = ", ".join(machine.name for machine in machines[:_SHOWN])
    more = f" and {len(machines) - _SHOWN} more" if len(machines) > _SHOWN else ""
    warning, again = f"This turns off {names}{more} and overwrites their system disks.", f"machines install {cluster}"
    confirm_name(warning, cluster, again, to=what, see=("the machines", f"{again} --dry-run"), as_json=as_json)


class View:
    """Print counts of machines by stage, and each failure when it happens."""

    def __init__(self, machines: int, steps: Steps, *, quiet: bool) -> None:
        self._machines = machines
        self._steps = steps
        self._quiet = quiet
        self._stages: dict[str, InstallStage] = {}

    def hear(self, machine: SiteMachine, stage: InstallStage, why: str) -> None:
        """Take a machine's new stage. Called from the machines' threads."""
        self._stages[machine.name] = stage
        counts = Counter(list(self._stages.values()))
        line = ", ".join(f"{number} {stage}" for stage, number in counts.items())
        self._steps.detail(f"{line} of {self._machines}")
        if why and not self._quiet:
            errors.print(Text(f"     {machine.name}: {why}", style="red"))


def conclude_dry(cluster: str, work: InstallPlan, *, as_json: bool) -> None:
    """Print what would be installed, and exit."""
    if as_json:
        reports = [report.to_json() for report in work.readings]
        names = [machine.name for machine in work.to_install]
        print_json({"cluster": cluster, "to_install": names, "left_out": list(work.left_out), "machines": reports})
    else:
        for machine in work.to_install:
            way = f"by {machine.settings.media}" if machine.settings.media else "by PXE"
            hand = "" if machine.settings.bmc else ", turn it on by hand"
            console.print(f"{machine.name}  {machine.rack}  {machine.address}  {way}{hand}", markup=False)
    raise typer.Exit(code(work.readings))


def conclude(cluster: str, work: InstallPlan, outcome: InstallOutcome, *, as_json: bool) -> None:
    """Print the result. Machines skipped because of their BMC's report count as failed."""
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
