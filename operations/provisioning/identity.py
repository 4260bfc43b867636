"""INV-003: checks that BMCs belong to the machines in the hosts file. Pure; takes the BMCs' reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cluster.problems import Problem
from operations.provisioning.bmc import MachineReport
from operations.provisioning.machines import SiteMachine

CODE = "INV-003"
_SHOWN = 4


def judge(
    machines: Sequence[SiteMachine], reports: Mapping[str, MachineReport], all_: Sequence[SiteMachine]
) -> dict[str, Problem]:
    """Return machine -> problem with its identity. Machines without a report are left out.

    all_: every machine of the cluster, to find whose MAC a machine really has.
    """
    owners = {machine.mac: machine for machine in all_}
    problems = {}
    for machine in machines:
        if machine.name in reports and machine.mac not in reports[machine.name].macs:
            problems[machine.name] = _problem(machine, reports, owners)
    return problems


def _problem(machine: SiteMachine, reports: Mapping[str, MachineReport], owners: Mapping[str, SiteMachine]) -> Problem:
    macs = reports[machine.name].macs
    if not macs:
        message = f"{_bmc(machine)} reports no MACs, so nothing proves that it is {machine.name}"
        hint = "turn the machine on once by hand: BMCs detect the cards at the first start"
        return Problem(CODE, message, hint, path=machine.name)
    other = next((owners[mac] for mac in macs if mac in owners), None)
    if other is None:
        message = f"{_bmc(machine)} reports {_listed(macs)}, but not {machine.mac}, which the hosts file has"
        hint = "if its card was replaced, write the new mac into the hosts file; if the BMC belongs to another machine, the right bmc"
        return Problem(CODE, message, hint, path=machine.name)
    message = f"{_bmc(machine)} belongs to {other.name}: it reports {other.mac}"
    if other.name in reports and machine.mac in reports[other.name].macs:
        message += f", and {_bmc(other)} belongs to {machine.name}"
        hint = (
            "the cables or addresses of the two BMCs are swapped: swap them back, or swap the two bmc in the hosts file"
        )
    else:
        hint = f"check where the cable of the BMC of {other.name} goes, and which address the BMC has"
    return Problem(CODE, message, hint, path=machine.name)


def _bmc(machine: SiteMachine) -> str:
    return f"the BMC at {machine.bmc} ({machine.name})"


def _listed(macs: Sequence[str]) -> str:
    more = f" and {len(macs) - _SHOWN} more" if len(macs) > _SHOWN else ""
    return ", ".join(macs[:_SHOWN]) + more


def together(problems: Mapping[str, Problem]) -> Iterator[Problem]:
    """Yield each problem once."""
    yield from dict.fromkeys(problems.values())
