"""The state of each machine's installation, in a crash-safe file.

One line per step; a machine's newest line counts. If a machine's MAC differs from its lines, it is another machine, and the
lines do not count.
"""

from __future__ import annotations

import threading
import time
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from cluster.journal import Lines
from cluster.shared import from_known_fields
from operations.provisioning.machines import SiteMachine


class InstallStage(StrEnum):
    """The progress of one machine."""

    UNKNOWN = "unknown"
    INSTALLING = "installing"
    """Its installer was started at `InstallRecord.at`."""
    INSTALLED = "installed"
    """Its installer has succeeded; it has not started from its disk yet."""
    DONE = "done"
    """It responds to SSH."""
    FAILED = "failed"


@dataclass(frozen=True)
class InstallRecord:
    """The state of one machine. at: Unix time. key: its SSH host key. why: the reason if it failed."""

    name: str
    mac: str
    stage: InstallStage = InstallStage.UNKNOWN
    at: float = 0.0
    key: str = ""
    why: str = ""


class InstallJournal:
    """The journal in a file. path: may not exist yet."""

    def __init__(self, path: Path) -> None:
        self._lines = Lines(path)
        self._lock = threading.Lock()
        self._records = {record.name: record for record in self._lines.read(_parse)}

    def of(self, machine: SiteMachine) -> InstallRecord:
        """Return the newest record of a machine."""
        with self._lock:
            return self._of(machine)

    def note(self, machine: SiteMachine, stage: InstallStage, why: str = "") -> InstallRecord:
        """Record that it has reached a stage. A new installation clears the former key."""
        with self._lock:
            old = self._of(machine)
            key = "" if stage is InstallStage.INSTALLING else old.key
            return self._write(InstallRecord(machine.name, machine.mac, stage, time.time(), key, why))

    def keep_key(self, machine: SiteMachine, key: str) -> None:
        """Record its host key."""
        with self._lock:
            self._write(replace(self._of(machine), key=key))

    def _of(self, machine: SiteMachine) -> InstallRecord:
        record = self._records.get(machine.name)
        return record if record and record.mac == machine.mac else InstallRecord(machine.name, machine.mac)

    def _write(self, record: InstallRecord) -> InstallRecord:
        self._lines.append([asdict(record)])
        self._records[record.name] = record
        return record


def _parse(entry: dict[str, Any]) -> InstallRecord:
    return from_known_fields(InstallRecord, {**entry, "stage": InstallStage(entry["stage"])})
