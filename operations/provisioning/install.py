"""Installs machines in parallel: boot the installer, wait for its report, start from disk.

A machine is turned off and on, not reset: some BMCs apply the boot target only at power-on. The installer turns the machine
off when it has finished; that is how the end is detected.
"""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from clients.timeouts import CONNECT_S
from cluster.waiting import join_all, poll
from operations.provisioning.bmc import Bmc, BootTarget
from operations.provisioning.connecting import Connect
from operations.provisioning.journal import InstallJournal, InstallStage
from operations.provisioning.machines import SiteMachine
from operations.provisioning.redfish import BmcError, BmcErrorKind
from operations.provisioning.reports import Reports, report_of

HostKey = Callable[[SiteMachine], str]
"""Returns the host key that responds at a machine's address, "" if none does yet."""
Watch = Callable[[SiteMachine, InstallStage, str], None]

_LOG_OUT_S = 5
"""Time to log out of BMCs after an interrupt. BMCs that do not respond end the session themselves."""


class _StuckError(Exception):
    """A machine has not made progress in time, or refuses; the text says why and what to do."""


class _StoppedError(Exception):
    """The run is being interrupted; work in progress on machines continues."""


@dataclass(frozen=True)
class Waits:
    """Time-outs in seconds. install: servers take up to ten minutes to boot, then they download packages."""

    power: float = 180
    install: float = 3600
    first_boot: float = 1200
    poll: float = 10


@dataclass(frozen=True)
class InstallResult:
    """The result of one machine's installation."""

    machine: SiteMachine
    stage: InstallStage
    seconds: float
    why: str = ""
    unreachable: bool = False


class Installation:
    """An installation run. connect: logs in to a machine's BMC. Machines at sites without BMCs are turned on by hand.

    reports: site -> reports of its machines. Without reports, only a BMC can show the end.
    """

    def __init__(
        self,
        connect: Connect,
        reports: Mapping[str, Reports],
        journal: InstallJournal,
        *,
        host_key: HostKey | None = None,
        watch: Watch = lambda *_: None,
        waits: Waits | None = None,
    ) -> None:
        self._connect = connect
        self._reports = reports
        self._journal = journal
        self._host_key = host_key or scanned_key
        self._watch = watch
        self._waits = waits or Waits()
        self._stop = threading.Event()

    def run(self, machines: Sequence[SiteMachine]) -> tuple[InstallResult, ...]:
        """Install the machines, each in its own thread: nearly all of the time is waiting.

        After an interrupt, threads stop waiting and the installers continue; the next run finds them in the journal.
        """
        results: dict[str, InstallResult] = {}

        def install_one(machine: SiteMachine) -> None:
            results[machine.name] = self._guarded(machine)

        threads = [threading.Thread(target=install_one, args=(machine,), daemon=True) for machine in machines]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        except BaseException:
            self._stop.set()
            join_all(threads, _LOG_OUT_S)
            raise
        return tuple(results[machine.name] for machine in machines)

    def _guarded(self, machine: SiteMachine) -> InstallResult:
        started = time.monotonic()
        unreachable = False
        try:
            self._install(machine)
            return InstallResult(machine, InstallStage.DONE, time.monotonic() - started)
        except _StoppedError:
            return InstallResult(
                machine, self._journal.of(machine).stage, time.monotonic() - started, "the run was interrupted"
            )
        except (BmcError, _StuckError) as error:
            why = str(error)
            unreachable = isinstance(error, BmcError) and error.kind is BmcErrorKind.UNREACHABLE
        except Exception as error:  # noqa: BLE001 - an error of one machine must not stop the others
            why = f"unexpected {type(error).__name__}: {error}"
        self._note(machine, InstallStage.FAILED, why)
        return InstallResult(machine, InstallStage.FAILED, time.monotonic() - started, why, unreachable)

    def _install(self, machine: SiteMachine) -> None:
        record = self._journal.of(machine)
        resumes = record.stage is InstallStage.INSTALLED or (
            record.stage is InstallStage.INSTALLING and time.time() - record.at < self._waits.install
        )
        if reports := self._reports.get(machine.site):
            reports.expect(machine, record.key if resumes else "")
        if machine.settings.bmc is None:
            if not resumes:
                self._note(machine, InstallStage.INSTALLING)
            if record.stage is not InstallStage.INSTALLED:
                self._wait("reported its key", lambda: self._heard(machine), self._waits.install)
                self._note(machine, InstallStage.INSTALLED)
        else:
            with self._connect(machine) as bmc:
                if not resumes:
                    self._boot_installer(machine, bmc)
                if record.stage is not InstallStage.INSTALLED:
                    self._wait_for_end(machine, bmc)
                self._start(machine, bmc)
        self._wait("responded to SSH", lambda: self._has_its_key(machine), self._waits.first_boot)
        self._note(machine, InstallStage.DONE)

    def _boot_installer(self, machine: SiteMachine, bmc: Bmc) -> None:
        if bmc.is_on is not False:
            bmc.turn(on=False)
            self._wait("turned off", lambda: bmc.is_on is False, self._waits.power)
        if machine.settings.media:
            bmc.insert(machine.settings.media)
        bmc.boot_once(BootTarget.MEDIA if machine.settings.media else BootTarget.NETWORK)
        bmc.turn(on=True)
        self._note(machine, InstallStage.INSTALLING)
        self._wait("turned on", lambda: bmc.is_on, self._waits.power)

    def _wait_for_end(self, machine: SiteMachine, bmc: Bmc) -> None:
        def ended() -> bool:
            key = self._heard(machine)
            if bmc.is_on is not False:
                return False
            # Check again: it may have reported its key between the two calls.
            if machine.site in self._reports and not (key or self._heard(machine)):
                raise _StuckError(
                    "it is off and has not reported a host key: someone turned it off, or it can't reach "
                    "provisioning.reports"
                )
            return True

        self._wait("finished its installation", ended, self._waits.install)
        self._note(machine, InstallStage.INSTALLED)

    def _start(self, machine: SiteMachine, bmc: Bmc) -> None:
        """Start it from its disk, and clear an earlier boot override."""
        if machine.settings.media:
            bmc.eject()
        bmc.boot_from_disk()
        if not bmc.is_on:
            bmc.turn(on=True)
            self._wait("turned on", lambda: bmc.is_on, self._waits.power)

    def _heard(self, machine: SiteMachine) -> str:
        """Return the key that it reported, "" if none. Raises _StuckError if it refuses to be installed."""
        reports = self._reports.get(machine.site)
        report = report_of(reports, machine.name) if reports else {}
        if "refusal" in report:
            raise _StuckError(report["refusal"])
        return report.get("key", "")

    def _has_its_key(self, machine: SiteMachine) -> bool:
        current = self._host_key(machine)
        expected = self._journal.of(machine).key
        if current and expected and current != expected:
            raise _StuckError(
                f"another machine responds at {machine.address}: its SSH host key is not the one reported during installation"
            )
        return bool(current)

    def _wait(self, what: str, come: Callable[[], object], longest_s: float) -> None:
        """Wait until `come`. If a BMC does not respond for a while, keep waiting."""
        trouble = ""

        def has_come() -> object:
            nonlocal trouble
            if self._stop.is_set():
                raise _StoppedError
            try:
                trouble = ""
                return come()
            except BmcError as error:
                if error.kind not in (BmcErrorKind.UNREACHABLE, BmcErrorKind.BUSY):
                    raise
                trouble = f" ({error})"
                return None

        if not poll(has_come, longest_s, self._waits.poll, self._stop.wait):
            raise _StuckError(f"has not {what} after {longest_s / 60:.0f} min{trouble}; look at its console")

    def _note(self, machine: SiteMachine, stage: InstallStage, why: str = "") -> None:
        self._journal.note(machine, stage, why)
        self._watch(machine, stage, why)


def scanned_key(machine: SiteMachine) -> str:
    """Return the host key from ssh-keyscan(1), which is part of the ssh client's package; "" if the port is not open."""
    try:
        with socket.create_connection((str(machine.address), machine.ssh_port), timeout=CONNECT_S):
            pass
    except OSError:
        return ""
    command = ["ssh-keyscan", "-T", "5", "-t", "ed25519", "-p", str(machine.ssh_port), str(machine.address)]
    output = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    lines = [line.split() for line in output.splitlines() if line and not line.startswith("#")]
    return " ".join(lines[0][1:3]) if lines and len(lines[0]) >= 3 else ""
