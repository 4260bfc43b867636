"""INV-003: whether BMCs are those of the machines that the hosts file says. Pure; what BMCs told is given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cluster.problems import Problem
from operations.provisioning.bmc import Told
from operations.provisioning.machines import Machine

CODE = "INV-003"
_SHOWN = 4


def judge(machines: Sequence[Machine], told: Mapping[str, Told], all_: Sequence[Machine]) -> dict[str, Problem]:
    """Machine -> what is wrong with who it is. Machines that told nothing are left out.

    all_: every machine of the cluster, whose MACs one of `machines` may turn out to have.
    """
    owners = {machine.mac: machine for machine in all_}
    found = {}
    for machine in machines:
        if machine.name in told and machine.mac not in told[machine.name].macs:
            found[machine.name] = _problem(machine, told, owners)
    return found


def _problem(machine: Machine, told: Mapping[str, Told], owners: Mapping[str, Machine]) -> Problem:
    macs = told[machine.name].macs
    if not macs:
        message = f"{_bmc(machine)} knows no MAC at all, so nothing shows that it is {machine.name}"
        hint = "turn the machine on once by hand: BMCs learn of its cards at its first start"
        return Problem(CODE, message, hint, path=machine.name)
    other = next((owners[mac] for mac in macs if mac in owners), None)
    if other is None:
        message = f"{_bmc(machine)} knows {_listed(macs)} and not {machine.mac}, which the hosts file gives it"
        hint = "where its card was changed, write the new mac; where the BMC is another machine's, its address"
        return Problem(CODE, message, hint, path=machine.name)
    message = f"{_bmc(machine)} is the one of {other.name}: it knows {other.mac}"
    if other.name in told and machine.mac in told[other.name].macs:
        message += f", and {_bmc(other)} is the one of {machine.name}"
        hint = "the cables of the two BMCs are swapped, or their addresses: swap them back, or the two bmc in the hosts file"
    else:
        hint = f"see where the cable from the BMC of {other.name} goes, and which address it has"
    return Problem(CODE, message, hint, path=machine.name)


def _bmc(machine: Machine) -> str:
    return f"the BMC at {machine.bmc} ({machine.name})"


def _listed(macs: Sequence[str]) -> str:
    more = f" and {len(macs) - _SHOWN} more" if len(macs) > _SHOWN else ""
    return ", ".join(macs[:_SHOWN]) + more


def together(problems: Mapping[str, Problem]) -> Iterator[Problem]:
    """Each once."""
    yield from dict.fromkeys(problems.values())
