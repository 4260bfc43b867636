"""The BMCs of a cluster's machines: how to log in, and what they report about their machines."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.errors import RefusedError
from cluster.problems import Problem
from cluster.spec import Cluster
from operations.provisioning import connecting, identity
from operations.provisioning.bmc import MachineReport
from operations.provisioning.connecting import Connect
from operations.provisioning.machines import SiteMachine
from operations.provisioning.redfish import BmcError, Patience
from operations.provisioning.trust import Login
from operations.stack import kept_secret

_ASKED_AT_ONCE = 64
"""Number of threads. Each site's `parallel` also limits how many of its BMCs are contacted at once."""


@dataclass(frozen=True)
class BmcReading:
    """The result of reading one machine's BMC: its report, or the error."""

    machine: SiteMachine
    report: MachineReport | None = None
    error: BmcError | None = None
    problem: Problem | None = None

    @property
    def is_healthy(self) -> bool:
        return self.report is not None and self.problem is None

    def to_json(self) -> dict[str, Any]:
        """Return it for --json."""
        report: dict[str, Any] = {"name": self.machine.name, "rack": self.machine.rack, "bmc": str(self.machine.bmc)}
        if self.report:
            identity = self.report
            report |= {
                "model": identity.model,
                "serial": identity.serial,
                "power": identity.power,
                "macs": list(identity.macs),
            }
        if self.error:
            report["error"] = {"code": f"bmc-{self.error.kind}", "text": str(self.error)}
        return report | {"ok": self.is_healthy, "problems": [self.problem.to_json()] if self.problem else []}


def by_site(machines: Sequence[SiteMachine]) -> dict[str, tuple[SiteMachine, ...]]:
    """Return site -> its machines."""
    return {
        site: tuple(machine for machine in machines if machine.site == site)
        for site in dict.fromkeys(machine.site for machine in machines)
    }


def connections(
    cluster: Cluster, folder: Path, machines: Sequence[SiteMachine], patience: Patience | None = None
) -> Connect:
    """Return a function that logs in to a machine's BMC. Raises RefusedError if a file or a secret is missing.

    folder: the folder of cluster.yaml, which has the certificates and pins.
    """
    bmcs = {site: at_site[0].settings.bmc for site, at_site in by_site(machines).items()}
    logins = {site: _login(cluster, own.credentials.secret) for site, own in bmcs.items() if own}
    return connecting.connections(machines, folder, logins, patience)


def _login(cluster: Cluster, name: str) -> Login:
    secret, store = secret_of(cluster, name), f"./menagerie secret {cluster.name} {name}"
    if secret is None:
        raise RefusedError(
            f"there is no secret {name} (user:password for BMCs); store it with: {store}", code="bmc-trust"
        )
    return Login.parse(secret, store)


def secret_of(cluster: Cluster, name: str) -> str | None:
    """Return a secret from the stack's configuration, None if there is no stack."""
    return kept_secret(cluster, name)


def read_all(machines: Sequence[SiteMachine], all_: Sequence[SiteMachine], connect: Connect) -> tuple[BmcReading, ...]:
    """Ask every BMC for its machine's identity. Changes nothing."""

    def ask(machine: SiteMachine) -> BmcReading:
        try:
            with connect(machine) as bmc:
                return BmcReading(machine, report=bmc.report())
        except BmcError as error:
            return BmcReading(machine, error=error)

    with ThreadPoolExecutor(max_workers=_ASKED_AT_ONCE) as pool:
        results = list(pool.map(ask, machines))
    reports = {result.machine.name: result.report for result in results if result.report}
    problems = identity.judge(machines, reports, all_)
    return tuple(
        BmcReading(result.machine, result.report, result.error, problems.get(result.machine.name)) for result in results
    )
