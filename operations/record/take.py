"""Takes the lock: for a new operation, or to resume an interrupted one."""

from __future__ import annotations

from datetime import datetime

from operations.record.errors import locked
from operations.record.model import CURRENT, OperationState, Record, parse
from operations.record.operation import Operation, Report
from operations.record.store import ConflictError, RecordStore, RecordStoreError, StoredObject

DEAD_S = 120.0
"""A holder on another machine counts as dead after this time without a heartbeat."""
_ATTEMPTS = 5


def take(store: RecordStore, own: Record, report: Report) -> Operation:
    """Lock the cluster for `own`. Raises LockedError."""
    for _ in range(_ATTEMPTS):
        try:
            kept = store.read(CURRENT)
            if kept is None:
                return Operation(store, own, store.create(CURRENT, own.to_bytes()), resumed=False)
            record = _successor(store, kept, parse(kept), own)
            resumed = record.id != own.id
            version = store.replace(CURRENT, record.to_bytes(), kept.version)
        except ConflictError:
            continue
        if resumed:
            done = ", ".join(step.name for step in record.steps)
            report(
                f"resuming the interrupted run that started {record.since:%Y-%m-%d %H:%M UTC}; completed steps: {done or 'none'}"
            )
        return Operation(store, record, version, resumed=resumed)
    raise RecordStoreError(f"{store.where}: other runs keep writing the record; run the same command again")


def _successor(store: RecordStore, kept: StoredObject, current: Record, own: Record) -> Record:
    """Return the record to write instead of `current`: `own`, or a continuation of `current`. Raises LockedError."""
    if current.state is OperationState.OVER or current.run == own.run:
        return own
    lives, silent_s = liveness(kept, current, store.now())
    if lives:
        raise locked(current, silent_s, lives=True, ended=lambda: not _still_holds(store, current))
    if current.is_same_as(own):
        return own.model_copy(update={"id": current.id, "since": current.since, "steps": current.steps})
    if not current.repeatable:
        raise locked(current, silent_s, lives=False)
    ended = current.model_copy(update={"state": OperationState.OVER, "result": "cut short", "ended": kept.modified})
    store.put(ended.key, ended.to_bytes())
    return own


def refuse_held(store: RecordStore, at: datetime) -> None:
    """Raise LockedError where `take` would for a new operation. Writes nothing. at: the time by the store's clock."""
    kept = store.read(CURRENT)
    current = parse(kept) if kept else None
    if kept is None or current is None or current.state is OperationState.OVER:
        return
    lives, silent_s = liveness(kept, current, at)
    if lives or not current.repeatable:
        raise locked(current, silent_s, lives=lives)


def _still_holds(store: RecordStore, held: Record) -> bool:
    kept = store.read(CURRENT)
    current = parse(kept) if kept else None
    return bool(kept and current and current.run == held.run and liveness(kept, current, store.now())[0])


def liveness(kept: StoredObject, record: Record, at: datetime) -> tuple[bool, float]:
    """Return whether the holder of a record is alive, and the seconds since its last heartbeat. at: by the store's clock."""
    silent_s = max((at - kept.modified).total_seconds(), 0.0)
    if record.state is not OperationState.RUNNING:
        return False, silent_s
    if record.holder.is_of_this_machine:
        return record.holder.lives, silent_s
    return silent_s <= DEAD_S, silent_s
