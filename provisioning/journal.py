"""How far each machine's installation is: a file that a run can lose no word of, however it ends.

One line of JSON a step, appended in one write; the newest line of a machine counts. A machine with another MAC than
its lines say is another machine, of which nothing is known.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path

from provisioning.machines import Machine

FORMAT = 1


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
        self._path = path
        self._lock = threading.Lock()
        self._known = {record.name: record for record in _read(path)}

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
        """One write, so that another process sees whole lines only (open(2), O_APPEND)."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, (json.dumps({"v": FORMAT, **asdict(record)}) + "\n").encode())
        finally:
            os.close(descriptor)
        self._known[record.name] = record
        return record


def _read(path: Path) -> Iterator[Record]:
    """Oldest first. A line of another format or a damaged one tells nothing."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        try:
            entry = json.loads(line)
            if entry.pop("v") == FORMAT:
                yield Record(**{**entry, "stage": Stage(entry["stage"])})
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
