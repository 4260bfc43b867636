"""An operation that this process holds."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from cluster.shared import NewerDataError
from operations.record.errors import TakenOverError
from operations.record.model import CURRENT, Record, State, Step, now, parse
from operations.record.store import ConflictError, Kept, RecordStore, RecordStoreError, Version

BEAT_S = 20.0
_ATTEMPTS = 5

Report = Callable[[str], None]


class Operation:
    """An operation that this process holds. Methods may be called from any thread."""

    def __init__(self, store: RecordStore, record: Record, version: Version, *, resumed: bool) -> None:
        self.resumed = resumed
        self.lost: TakenOverError | None = None
        self.outcome: BaseException | None = None
        """How it ends where its block ends well: for verbs that report errors rather than raise them."""
        self._store = store
        self._record = record
        self._version = version
        self._lock = threading.RLock()
        self._over = threading.Event()

    @property
    def is_shared(self) -> bool:
        """Whether operators on other machines are kept out."""
        return self._store.shared

    @property
    def record(self) -> Record:
        return self._record

    @property
    def facts(self) -> Mapping[str, str]:
        """Of all steps that are done; of a later step where two have the same."""
        return {name: value for step in self._record.steps for name, value in step.facts.items()}

    def has(self, step: str) -> bool:
        """Whether the step is done, by this run or by the one that it goes on with."""
        return any(each.name == step for each in self._record.steps)

    def done(self, step: str, **facts: str) -> None:
        """Write that a step is done. Raises TakenOverError, and RecordStoreError where it could not be written."""
        with self._lock:
            kept = tuple(each for each in self._record.steps if each.name != step)
            self._write({"steps": (*kept, Step(name=step, at=now(), facts=facts))})

    def check(self) -> None:
        """Raises TakenOverError where somebody else has the cluster by now, as far as the heartbeat has noticed."""
        if self.lost:
            raise self.lost

    def beat(self) -> None:
        """Say that this run lives."""
        self._write({})

    def move(self, store: RecordStore) -> None:
        """Go on in another store, which nobody else writes to. What is in this one stays as it is."""
        with self._lock:
            store.put(CURRENT, self._record.to_bytes())
            self._store = store

    def end(self, error: BaseException | None) -> None:
        """Write how it ended. Raises TakenOverError, and RecordStoreError where it could not be written."""
        self._close(self._record.ending(error))

    def close(self, result: str) -> None:
        """Give it up as over, whatever is left to do."""
        self._close(self._record.model_copy(update={"state": State.OVER, "result": result, "ended": now()}))

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
            wanted = self._changed(changes)
            for _ in range(_ATTEMPTS):
                try:
                    self._version = self._put(wanted)
                except ConflictError:
                    continue
                self._record = wanted
                return
            raise RecordStoreError(f"{self._store.where} did not take the record in {_ATTEMPTS} attempts")

    def _put(self, wanted: Record) -> Version:
        """An answer may have been lost on its way, so a record of this very run is still ours, and one that is gone may be
        made again: had somebody else begun since, there would be theirs."""
        try:
            return self._store.replace(CURRENT, wanted.to_bytes(), self._version)
        except ConflictError:
            kept = self._store.read(CURRENT)
            if kept is None:
                return self._store.create(CURRENT, wanted.to_bytes())
            found = _parsed(kept)
            if found is None or found.run != wanted.run:
                self.lost = TakenOverError(wanted, found)
                raise self.lost from None
            return self._store.replace(CURRENT, wanted.to_bytes(), kept.version)

    @contextmanager
    def beating(self, report: Report) -> Iterator[None]:
        """A heartbeat for the length of a block."""
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


def _parsed(kept: Kept) -> Record | None:
    """None for what a newer Menagerie wrote: it is not ours."""
    try:
        return parse(kept)
    except NewerDataError:
        return None


def _interrupt() -> None:
    """End what the main thread does, as SIGTERM would where somebody listens; elsewhere its next step ends it."""
    if callable(signal.getsignal(signal.SIGTERM)):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
