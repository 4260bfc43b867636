"""The operation that this process holds."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from cluster.shared import NewerDataError
from operations.record.errors import TakenOverError
from operations.record.model import CURRENT, OperationState, Record, Step, now, parse
from operations.record.store import ConflictError, RecordStore, RecordStoreError, StoredObject, Version

BEAT_S = 20.0
_ATTEMPTS = 5

Report = Callable[[str], None]


class Operation:
    """An operation that this process holds. Methods may be called from any thread."""

    def __init__(self, store: RecordStore, record: Record, version: Version, *, resumed: bool) -> None:
        self.resumed = resumed
        self.lost: TakenOverError | None = None
        self.outcome: BaseException | None = None
        """The error to record if the block ends without one: for verbs that report errors instead of raising them."""
        self._store = store
        self._record = record
        self._version = version
        self._lock = threading.RLock()
        self._over = threading.Event()

    @property
    def is_shared(self) -> bool:
        """Whether it also locks out operators on other machines."""
        return self._store.shared

    @property
    def record(self) -> Record:
        return self._record

    @property
    def facts(self) -> Mapping[str, str]:
        """Facts of all completed steps. If two steps have the same fact, the later one counts."""
        return {name: value for step in self._record.steps for name, value in step.facts.items()}

    def has(self, step: str) -> bool:
        """Return whether the step is done, by this run or by the one it resumes."""
        return any(item.name == step for item in self._record.steps)

    def done(self, step: str, **facts: str) -> None:
        """Record a step as done. Raises TakenOverError, and RecordStoreError if it can't be written."""
        with self._lock:
            kept = tuple(item for item in self._record.steps if item.name != step)
            self._write({"steps": (*kept, Step(name=step, at=now(), facts=facts))})

    def check(self) -> None:
        """Raise TakenOverError if the heartbeat has noticed that another run has taken over the cluster."""
        if self.lost:
            raise self.lost

    def beat(self) -> None:
        """Write a heartbeat."""
        self._write({})

    def move(self, store: RecordStore) -> None:
        """Continue the record in another store, which nobody else writes to. The record in the old store stays."""
        with self._lock:
            store.put(CURRENT, self._record.to_bytes())
            self._store = store

    def end(self, error: BaseException | None) -> None:
        """Record its end. Raises TakenOverError, and RecordStoreError if it can't be written."""
        self._close(self._record.ending(error))

    def close(self, result: str) -> None:
        """Mark it as over, even if steps are left."""
        self._close(self._record.model_copy(update={"state": OperationState.OVER, "result": result, "ended": now()}))

    def _close(self, ended: Record) -> None:
        with self._lock:
            self._over.set()
            self._write(ended.model_dump())
            self._store.put(ended.key, ended.to_bytes())

    def _changed(self, changes: Mapping[str, object]) -> Record:
        return Record.model_validate({**self._record.model_dump(), "heartbeat": now(), **changes})

    def _write(self, changes: Mapping[str, object]) -> None:
        with self._lock:
            self.check()
            record = self._changed(changes)
            for _ in range(_ATTEMPTS):
                try:
                    self._version = self._put(record)
                except ConflictError:
                    continue
                self._record = record
                return
            raise RecordStoreError(f"{self._store.where} did not accept the record in {_ATTEMPTS} attempts")

    def _put(self, record: Record) -> Version:
        """Write the record. A response may have been lost: a record of this very run is still ours. A missing record may be
        created again: if another run had started, its record would be there."""
        try:
            return self._store.replace(CURRENT, record.to_bytes(), self._version)
        except ConflictError:
            kept = self._store.read(CURRENT)
            if kept is None:
                return self._store.create(CURRENT, record.to_bytes())
            stored = _parsed(kept)
            if stored is None or stored.run != record.run:
                self.lost = TakenOverError(record, stored)
                raise self.lost from None
            return self._store.replace(CURRENT, record.to_bytes(), kept.version)

    @contextmanager
    def beating(self, report: Report) -> Iterator[None]:
        """Write heartbeats for the length of a block."""
        thread = threading.Thread(target=self._beats, args=(report,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _beats(self, report: Report) -> None:
        while not self._over.wait(BEAT_S):
            try:
                self.beat()
            except TakenOverError:
                _interrupt()
                return
            except RecordStoreError as error:
                report(f"the heartbeat was not written: {error}")


def _parsed(kept: StoredObject) -> Record | None:
    """Parse a record; None if a newer Menagerie wrote it, because then it is not ours."""
    try:
        return parse(kept)
    except NewerDataError:
        return None


def _interrupt() -> None:
    """Interrupt the main thread with SIGTERM if it has a handler. If not, its next step ends it."""
    if callable(signal.getsignal(signal.SIGTERM)):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
