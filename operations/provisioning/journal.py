"""The state of each machine's installation, in a crash-safe file, and in the cluster's bucket for other checkouts.

In the file: one line per step; a machine's newest line counts. In the bucket: one object per machine. The newer of the two
counts. If a machine's MAC differs from its record, it is another machine, and the record does not count.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from cluster.journal import Lines, line, parsed
from cluster.shared import from_known_fields
from operations.provisioning.machines import SiteMachine
from operations.record.store import RecordStore, RecordStoreError

FOLDER = "machines"
"""Folder of the records of installed machines in the store."""


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

    def is_newer_than(self, other: InstallRecord | None) -> bool:
        """Return whether this record, or its key, was written later."""
        return other is None or (self.at, bool(self.key)) > (other.at, bool(other.key))


class InstallJournal:
    """The journal of a cluster.

    path: of this checkout's file, which may not exist yet. shared: the cluster's bucket; None if it has none yet.
    Errors: raises RecordStoreError if the bucket does not answer, NewerDataError.
    """

    def __init__(self, path: Path, shared: RecordStore | None = None) -> None:
        self._lines = Lines(path)
        self._shared = shared
        self._lock = threading.Lock()
        self._records = {record.name: record for record in self._lines.read(_parse)}
        others = {record.name: record for record in _of_others(shared)} if shared else {}
        self._unshared = {name for name, record in self._records.items() if record.is_newer_than(others.get(name))}
        self._records |= {name: record for name, record in others.items() if name not in self._unshared}

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

    def share(self) -> None:
        """Write records to the bucket that it does not have: those of before there was one, and those that it did not accept.

        Errors: raises RecordStoreError.
        """
        with self._lock:
            for name in sorted(self._unshared):
                self._put(self._records[name])

    def _of(self, machine: SiteMachine) -> InstallRecord:
        record = self._records.get(machine.name)
        return record if record and record.mac == machine.mac else InstallRecord(machine.name, machine.mac)

    def _write(self, record: InstallRecord) -> InstallRecord:
        self._lines.append([asdict(record)])
        self._records[record.name] = record
        self._unshared.add(record.name)
        with suppress(RecordStoreError):  # an installation goes on; `share` tries again
            self._put(record)
        return record

    def _put(self, record: InstallRecord) -> None:
        if self._shared:
            self._shared.put(f"{FOLDER}/{record.name}", line(asdict(record)).encode())
            self._unshared.discard(record.name)


def _of_others(shared: RecordStore) -> Iterator[InstallRecord]:
    for key, value in shared.read_all(FOLDER).items():
        record = parsed(value.decode(errors="replace"), f"{key} in {shared.where}", _parse)
        if record:
            yield record


def _parse(entry: dict[str, Any]) -> InstallRecord:
    return from_known_fields(InstallRecord, {**entry, "stage": InstallStage(entry["stage"])})
