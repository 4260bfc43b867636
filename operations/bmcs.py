"""The BMCs of a cluster's machines: what opens them, and what they tell of their machines."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.errors import RefusedError
from cluster.problems import Problem
from cluster.spec import Cluster
from operations.provisioning import identity
from operations.provisioning.bmc import Bmc, Told
from operations.provisioning.install import Connect
from operations.provisioning.machines import Machine
from operations.provisioning.redfish import BmcError, Kind, Patience, Redfish
from operations.provisioning.trust import Login, Trust
from operations.stack import kept_secret

_ASKED_AT_ONCE = 64
"""Threads; of each site no more BMCs are asked at once than its `parallel` says."""


@dataclass(frozen=True)
class Seen:
    """What a look at one machine's BMC gave: what it told, or the error."""

    machine: Machine
    told: Told | None = None
    error: BmcError | None = None
    problem: Problem | None = None

    @property
    def is_well(self) -> bool:
        return self.told is not None and self.problem is None

    def to_json(self) -> dict[str, Any]:
        """For --json."""
        found: dict[str, Any] = {"name": self.machine.name, "rack": self.machine.rack, "bmc": str(self.machine.bmc)}
        if self.told:
            told = self.told
            found |= {"model": told.model, "serial": told.serial, "power": told.power, "macs": list(told.macs)}
        if self.error:
            found["error"] = {"code": f"bmc-{self.error.kind}", "text": str(self.error)}
        return found | {"ok": self.is_well, "problems": [self.problem.to_json()] if self.problem else []}


def by_site(machines: Sequence[Machine]) -> dict[str, tuple[Machine, ...]]:
    """Site -> its machines."""
    return {
        site: tuple(one for one in machines if one.site == site) for site in dict.fromkeys(m.site for m in machines)
    }


def connections(
    cluster: Cluster, folder: Path, machines: Sequence[Machine], patience: Patience | None = None
) -> Connect:
    """How each machine's BMC is logged in at. RefusedError where a file or a secret is missing.

    folder: that of cluster.yaml, beside which certificates and pins lie.
    """
    sites = {site: own[0].settings.bmc for site, own in by_site(machines).items()}
    known = {site: bmcs for site, bmcs in sites.items() if bmcs}
    trusts = {site: Trust.load(bmcs, folder) for site, bmcs in known.items()}
    logins = {site: _login(cluster, bmcs.credentials.secret) for site, bmcs in known.items()}
    gates = {site: threading.Semaphore(bmcs.parallel) for site, bmcs in known.items()}

    @contextmanager
    def connect(machine: Machine) -> Iterator[Bmc]:
        bmcs = known.get(machine.site)
        if bmcs is None or machine.bmc is None:
            raise BmcError(Kind.MISSING, f"{machine.name} has no BMC in the spec")
        site = machine.site
        with Redfish(
            machine.bmc, bmcs.port, logins[site], trusts[site], patience=patience, gate=gates[site]
        ) as redfish:
            yield Bmc(redfish, machine.mac)

    return connect


def _login(cluster: Cluster, name: str) -> Login:
    secret = secret_of(cluster, name)
    if secret is None:
        raise RefusedError(
            f"there is no secret {name}, which holds user:password of BMCs; store it with: "
            f"./menagerie secret {cluster.name} {name}",
            code="bmc-trust",
        )
    return Login.parse(secret, name)


def secret_of(cluster: Cluster, name: str) -> str | None:
    """A secret of the stack's configuration, None where there is no stack."""
    return kept_secret(cluster, name)


def look(machines: Sequence[Machine], all_: Sequence[Machine], connect: Connect) -> tuple[Seen, ...]:
    """Ask every BMC who its machine is. Nothing is changed."""

    def one(machine: Machine) -> Seen:
        try:
            with connect(machine) as bmc:
                return Seen(machine, told=bmc.told())
        except BmcError as error:
            return Seen(machine, error=error)

    with ThreadPoolExecutor(max_workers=_ASKED_AT_ONCE) as pool:
        seen = list(pool.map(one, machines))
    told = {each.machine.name: each.told for each in seen if each.told}
    wrong = identity.judge(machines, told, all_)
    return tuple(Seen(each.machine, each.told, each.error, wrong.get(each.machine.name)) for each in seen)
