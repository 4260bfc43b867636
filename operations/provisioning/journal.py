"""How far each machine's installation is, in a file that a run can lose no word of.

A line a step; the newest line of a machine counts. A machine with another MAC than its lines say is another machine, of
which nothing is known.
"""

from __future__ import annotations

import threading
import time
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from cluster.journal import Lines
from cluster.shared import known
from operations.provisioning.machines import Machine


class Stage(StrEnum):
    """How far one machine is."""

    UNKNOWN = "unknown"
    INSTALLING = "installing"
    """Told to boot its installer, at `Record.at`."""
    INSTALLED = "installed"
    """Its installer has ended well; it is still to start from its disk."""
    DONE = "done"
    """Answers by SSH."""
    FAILED = "failed"


@dataclass(frozen=True)
class Record:
    """What is known of one machine. at: seconds since 1970. key: its SSH host key. why: it failed."""

    name: str
    mac: str
    stage: Stage = Stage.UNKNOWN
    at: float = 0.0
    key: str = ""
    why: str = ""


class Journal:
    """path: the file; it need not exist."""

    def __init__(self, path: Path) -> None:
        self._lines = Lines(path)
        self._lock = threading.Lock()
        self._known = {record.name: record for record in self._lines.read(_parse)}

    def of(self, machine: Machine) -> Record:
        """The newest record of a machine."""
        with self._lock:
            return self._of(machine)

    def note(self, machine: Machine, stage: Stage, why: str = "") -> Record:
        """It has come to this stage now. A new installation forgets the key of the one before."""
        with self._lock:
            old = self._of(machine)
            key = "" if stage is Stage.INSTALLING else old.key
            return self._write(Record(machine.name, machine.mac, stage, time.time(), key, why))

    def keep_key(self, machine: Machine, key: str) -> None:
        """It has told its key."""
        with self._lock:
            self._write(replace(self._of(machine), key=key))

    def _of(self, machine: Machine) -> Record:
        found = self._known.get(machine.name)
        return found if found and found.mac == machine.mac else Record(machine.name, machine.mac)

    def _write(self, record: Record) -> Record:
        self._lines.append([asdict(record)])
        self._known[record.name] = record
        return record


def _parse(entry: dict[str, Any]) -> Record:
    return known(Record, {**entry, "stage": Stage(entry["stage"])})
