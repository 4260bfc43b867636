"""Machines installed side by side: each is told to boot its installer, heard, and started from its disk.

A machine is turned off first and on again, not reset: some BMCs heed what to boot from only when it is turned on. Its
installer turns it off when it has ended, and that it is off again is how the end is known.
"""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from operations.provisioning.bmc import Bmc, Boot
from operations.provisioning.journal import Journal, Stage
from operations.provisioning.machines import Machine
from operations.provisioning.redfish import BmcError, Kind
from operations.provisioning.reports import Reports, said

Connect = Callable[[Machine], AbstractContextManager[Bmc]]
HostKey = Callable[[Machine], str]
"""The host key that answers at a machine's address, "" where none does yet."""
Watch = Callable[[Machine, Stage, str], None]

_LOG_OUT_S = 5
"""For BMCs to be logged out at, after an interrupt; those that do not answer end the session themselves."""


class StuckError(Exception):
    """A machine has not come to where it should be by now, or refuses; the text says why and what to do."""


class StoppedError(Exception):
    """The run is being ended from outside; what is under way on machines goes on by itself."""


@dataclass(frozen=True)
class Waits:
    """Longest waits, in seconds. install: servers take up to ten minutes until they boot, then packages are fetched."""

    power: float = 180
    install: float = 3600
    first_boot: float = 1200
    poll: float = 10


@dataclass(frozen=True)
class Result:
    """How one machine's installation ended."""

    machine: Machine
    stage: Stage
    seconds: float
    why: str = ""
    unreachable: bool = False


class Installation:
    """connect: logs in at a machine's BMC. Machines of sites without BMCs are turned on by hand.

    reports: site -> what hears its machines. Where nobody listens, only a BMC knows the end.
    """

    def __init__(
        self,
        connect: Connect,
        reports: Mapping[str, Reports],
        journal: Journal,
        *,
        host_key: HostKey | None = None,
        watch: Watch = lambda *_: None,
        waits: Waits | None = None,
    ) -> None:
        self._connect = connect
        self._reports = reports
        self._journal = journal
        self._host_key = host_key or answered_key
        self._watch = watch
        self._waits = waits or Waits()
        self._stop = threading.Event()

    def run(self, machines: Sequence[Machine]) -> tuple[Result, ...]:
        """Install them, each in a thread of its own: nearly all of the time is waiting.

        After an interrupt nobody waits any longer, and the installers go on; the next run finds them in the journal.
        """
        results: dict[str, Result] = {}

        def one(machine: Machine) -> None:
            results[machine.name] = self._guarded(machine)

        threads = [threading.Thread(target=one, args=(machine,), daemon=True) for machine in machines]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        except BaseException:
            self._stop.set()
            deadline = time.monotonic() + _LOG_OUT_S
            for thread in threads:
                if thread.ident:
                    thread.join(max(deadline - time.monotonic(), 0))
            raise
        return tuple(results[machine.name] for machine in machines)

    def _guarded(self, machine: Machine) -> Result:
        began = time.monotonic()
        unreachable = False
        try:
            self._install(machine)
            return Result(machine, Stage.DONE, time.monotonic() - began)
        except StoppedError:
            return Result(machine, self._journal.of(machine).stage, time.monotonic() - began, "the run was ended")
        except (BmcError, StuckError) as error:
            why = str(error)
            unreachable = isinstance(error, BmcError) and error.kind is Kind.UNREACHABLE
        except Exception as error:  # noqa: BLE001 - one machine's trouble ends no other's
            why = f"unexpected {type(error).__name__}: {error}"
        self._note(machine, Stage.FAILED, why)
        return Result(machine, Stage.FAILED, time.monotonic() - began, why, unreachable)

    def _install(self, machine: Machine) -> None:
        record = self._journal.of(machine)
        goes_on = record.stage is Stage.INSTALLED or (
            record.stage is Stage.INSTALLING and time.time() - record.at < self._waits.install
        )
        if reports := self._reports.get(machine.site):
            reports.expect(machine, record.key if goes_on else "")
        if machine.settings.bmc is None:
            if not goes_on:
                self._note(machine, Stage.INSTALLING)
            if record.stage is not Stage.INSTALLED:
                self._wait("told its key", lambda: self._heard(machine), self._waits.install)
                self._note(machine, Stage.INSTALLED)
        else:
            with self._connect(machine) as bmc:
                if not goes_on:
                    self._boot_installer(machine, bmc)
                if record.stage is not Stage.INSTALLED:
                    self._wait_for_end(machine, bmc)
                self._start(machine, bmc)
        self._wait("answered by SSH", lambda: self._is_it(machine), self._waits.first_boot)
        self._note(machine, Stage.DONE)

    def _boot_installer(self, machine: Machine, bmc: Bmc) -> None:
        if bmc.is_on is not False:
            bmc.turn(on=False)
            self._wait("turned off", lambda: bmc.is_on is False, self._waits.power)
        if machine.settings.media:
            bmc.insert(machine.settings.media)
        bmc.boot_once(Boot.MEDIA if machine.settings.media else Boot.NETWORK)
        bmc.turn(on=True)
        self._note(machine, Stage.INSTALLING)
        self._wait("turned on", lambda: bmc.is_on, self._waits.power)

    def _wait_for_end(self, machine: Machine, bmc: Bmc) -> None:
        def ended() -> bool:
            heard = self._heard(machine)
            if bmc.is_on is not False:
                return False
            # Again: it may have told its key between the two.
            if machine.site in self._reports and not (heard or self._heard(machine)):
                raise StuckError(
                    "it is off, and has told no host key: somebody turned it off, or its way to provisioning.reports "
                    "is closed"
                )
            return True

        self._wait("ended its installation", ended, self._waits.install)
        self._note(machine, Stage.INSTALLED)

    def _start(self, machine: Machine, bmc: Bmc) -> None:
        """From its disk, and never again from the network by what was said before."""
        if machine.settings.media:
            bmc.eject()
        bmc.boot_from_disk()
        if not bmc.is_on:
            bmc.turn(on=True)
            self._wait("turned on", lambda: bmc.is_on, self._waits.power)

    def _heard(self, machine: Machine) -> str:
        """The key that it told. Raises StuckError for what it refuses."""
        reports = self._reports.get(machine.site)
        told = said(reports, machine.name) if reports else {}
        if "refusal" in told:
            raise StuckError(told["refusal"])
        return told.get("key", "")

    def _is_it(self, machine: Machine) -> bool:
        answered = self._host_key(machine)
        known = self._journal.of(machine).key
        if answered and known and answered != known:
            raise StuckError(
                f"another machine answers at {machine.address}: its SSH host key isn't the one that was told in installing"
            )
        return bool(answered)

    def _wait(self, what: str, come: Callable[[], object], longest_s: float) -> None:
        """Until `come`. A BMC that does not answer for a while is no reason to give its machine up."""
        deadline = time.monotonic() + longest_s
        trouble = ""
        while True:
            if self._stop.is_set():
                raise StoppedError
            try:
                if come():
                    return
                trouble = ""
            except BmcError as error:
                if error.kind not in (Kind.UNREACHABLE, Kind.BUSY):
                    raise
                trouble = f" ({error})"
            if time.monotonic() >= deadline:
                raise StuckError(f"has not {what} after {longest_s / 60:.0f} min{trouble}; its console shows why")
            self._stop.wait(self._waits.poll)

    def _note(self, machine: Machine, stage: Stage, why: str = "") -> None:
        self._journal.note(machine, stage, why)
        self._watch(machine, stage, why)


def answered_key(machine: Machine) -> str:
    """By ssh-keyscan(1), of the client's package, once the port is open."""
    try:
        with socket.create_connection((str(machine.address), machine.ssh_port), timeout=5):
            pass
    except OSError:
        return ""
    command = ["ssh-keyscan", "-T", "5", "-t", "ed25519", "-p", str(machine.ssh_port), str(machine.address)]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    lines = [line.split() for line in told.splitlines() if line and not line.startswith("#")]
    return " ".join(lines[0][1:3]) if lines and len(lines[0]) >= 3 else ""
