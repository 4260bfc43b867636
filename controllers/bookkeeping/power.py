"""Reads the power of machines at sites from their BMCs, in the background, so that rounds do not wait for them.

BMCs are slow, and some are always silent. Each is read every ten minutes, not all at the same time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from cluster.errors import FailedError, MenagerieError
from cluster.provisioning import reader_secrets
from cluster.spec import Cluster
from operations.provisioning.connecting import connections
from operations.provisioning.machines import SiteMachine, every
from operations.provisioning.redfish import Patience
from operations.provisioning.trust import Login

EVERY_S = 600
_A_SECOND = 20
"""So many BMCs are read for the first time in a second."""
_THREADS = 64
_PATIENCE = Patience(read_s=20, tries=2)
log = logging.getLogger(__name__)


class Reading(NamedTuple):
    """watts: None if the BMC did not say. age_s: how long ago."""

    name: str
    watts: int | None
    age_s: float


class Power:
    """Readings of the machines of a cluster. read: returns the watts of one; called from threads. clock: never jumps."""

    def __init__(self, read: Callable[[SiteMachine], int], clock: Callable[[], float] = time.monotonic) -> None:
        self._read, self._clock = read, clock
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="bmc")
        self._due: dict[str, float] = {}
        self._running: dict[str, Future[tuple[int | None, str, float]]] = {}
        self._whys: dict[str, str] = {}

    def turn(self, machines: Sequence[SiteMachine]) -> Iterator[Reading]:
        """Start readings that are due, and yield those that have ended since the last turn."""
        now = self._clock()
        for name in [name for name, future in self._running.items() if future.done()]:
            watts, why, at = self._running.pop(name).result()
            self._note(name, why)
            yield Reading(name, watts, max(0.0, now - at))
        for number, machine in enumerate(machines):
            due = self._due.setdefault(machine.name, now + number / _A_SECOND)
            if due <= now and machine.name not in self._running:
                self._due[machine.name] = max(due + EVERY_S, now)
                self._running[machine.name] = self._pool.submit(self._one, machine)
        for name in self._due.keys() - {machine.name for machine in machines}:
            del self._due[name]
            self._whys.pop(name, None)

    @property
    def silent(self) -> int:
        """Return how many BMCs did not say it when they were read last."""
        return len(self._whys)

    def close(self) -> None:
        """Start no further reading."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _one(self, machine: SiteMachine) -> tuple[int | None, str, float]:
        """Return (watts, why there are none, time). A BMC answers what it likes, which must not keep others from being read."""
        try:
            return self._read(machine), "", self._clock()
        except (MenagerieError, AttributeError, KeyError, TypeError, ValueError) as error:
            why = str(error) if isinstance(error, MenagerieError) else f"its BMC's answer can't be read: {error!r}"
            return None, why, self._clock()

    def _note(self, name: str, why: str) -> None:
        """Log what is new: that a BMC does not say it, and why, and that it does again."""
        before = self._whys.pop(name, "")
        if why:
            self._whys[name] = why
        if why and why != before:
            log.warning("no reading of the power of %s: %s", name, why)
        if before and not why:
            log.info("the power of %s is read again", name)


def logins(sites: Mapping[str, str], secret_of: Callable[[str], str]) -> dict[str, str]:
    """Return file -> login, as delivered to the pods. sites: site -> secret."""
    return {file_of(site): secret_of(secret) for site, secret in sorted(sites.items())}


def file_of(site: str) -> str:
    """Return the name of the file with the login for a site's BMCs."""
    return f"bmc-{site}"


def read_logins(cluster: Cluster, folder: Path) -> dict[str, str]:
    """Return site -> login, of the files in a folder. Errors: raises FailedError."""
    try:
        return {
            site: (folder / file_of(site)).read_text(encoding="utf-8") for site in reader_secrets(cluster.spec.sites)
        }
    except OSError as error:
        text = f"a login of BMCs can't be read ({error}); `menagerie controllers apply` delivers it"
        raise FailedError(text, code="ledger") from None


def machines_of(cluster: Cluster) -> tuple[SiteMachine, ...]:
    """Return the machines whose power can be read: at a site with a reader, with a BMC."""
    readers = reader_secrets(cluster.spec.sites)
    return tuple(machine for machine in every(cluster) if machine.site in readers and machine.bmc)


def opened(cluster: Cluster, folder: Path, given: Mapping[str, str]) -> Power | None:
    """Return the readings of a cluster's machines, None if none can be read. folder: of the spec. given: site -> login.

    Errors: raises RefusedError for a login or a file of trust that is unusable.
    """
    if not given:
        return None
    store = f"./menagerie secret {cluster.name} {{}}"
    secrets = reader_secrets(cluster.spec.sites)
    parsed = {site: Login.parse(login, store.format(secrets[site])) for site, login in given.items()}
    connect = connections(machines_of(cluster), folder, parsed, _PATIENCE)

    def read(machine: SiteMachine) -> int:
        with connect(machine) as bmc:
            return bmc.watts()

    return Power(read)
