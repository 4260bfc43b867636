"""Logging in to the BMCs of machines, with logins that the caller has."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from operations.provisioning.bmc import Bmc
from operations.provisioning.machines import SiteMachine
from operations.provisioning.redfish import BmcError, BmcErrorKind, Patience, Redfish
from operations.provisioning.trust import Login, Trust

Connect = Callable[[SiteMachine], AbstractContextManager[Bmc]]
"""Logs in to a machine's BMC for the length of a block."""


def connections(
    machines: Sequence[SiteMachine], folder: Path, logins: Mapping[str, Login], patience: Patience | None = None
) -> Connect:
    """Return a function that logs in to a machine's BMC. Raises RefusedError if a file is missing.

    folder: the folder of cluster.yaml, which has the certificates and pins. logins: by site; sites without one have no BMCs.
    """
    bmcs = {machine.site: machine.settings.bmc for machine in machines if machine.site in logins}
    settings = {site: own for site, own in bmcs.items() if own}
    trusts = {site: Trust.load(own, folder) for site, own in settings.items()}
    gates = {site: threading.Semaphore(own.parallel) for site, own in settings.items()}

    @contextmanager
    def connect(machine: SiteMachine) -> Iterator[Bmc]:
        site, own = machine.site, settings.get(machine.site)
        if own is None or machine.bmc is None:
            raise BmcError(BmcErrorKind.MISSING, f"{machine.name} has no BMC in the spec")
        with Redfish(machine.bmc, own.port, logins[site], trusts[site], patience=patience, gate=gates[site]) as redfish:
            yield Bmc(redfish, machine.mac)

    return connect
