"""The history of operations on a cluster, and the removal of an abandoned lock."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime

from clients.access import Access
from cluster.errors import RefusedError
from operations.record.errors import locked
from operations.record.holder import Holder
from operations.record.model import CURRENT, HISTORY, OperationState, Record, parse
from operations.record.store import ConflictError, RecordStore, bucket_store, has_local, local_store
from operations.record.take import liveness, refuse_held


@dataclass(frozen=True)
class Ledger:
    """current: the operation that holds the cluster, None if there is none. lives: whether its holder is alive. silent_s:
    since its last heartbeat. past: ended operations, newest first. where: the stores that were read, for people.
    """

    where: str
    current: Record | None
    lives: bool
    silent_s: float
    past: tuple[Record, ...]


def stores(cluster: str, access: Access | None) -> tuple[RecordStore, ...]:
    """Return the stores of a cluster's records: its bucket, and this checkout's folder."""
    bucket = bucket_store(access) if access else None
    return (*((bucket,) if bucket else ()), *((local_store(cluster),) if has_local(cluster) else ()))


def read_ledger(cluster: str, access: Access | None, last: int = 10) -> Ledger:
    """Read the ledger. Writes nothing, so it uses this machine's clock for the store's. Raises RecordStoreError."""
    record_stores = stores(cluster, access)
    past = [record for store in record_stores for record in _past(store, last)]
    past.sort(key=lambda record: record.since, reverse=True)
    where = " and ".join(store.where for store in record_stores) or "there are no records of it yet"
    for store in record_stores:
        kept = store.read(CURRENT)
        record_ = parse(kept) if kept else None
        if kept and record_ and record_.state is not OperationState.OVER:
            lives, silent_s = liveness(kept, record_, datetime.now(UTC))
            others = [record for record in past if record.id != record_.id]
            return Ledger(where, record_, lives, silent_s, tuple(others[:last]))
    return Ledger(where, None, False, 0.0, tuple(past[:last]))


def refuse_unless_free(cluster: str, access: Access | None, *, writes: bool = True) -> None:
    """Raise LockedError if an operation holds the cluster, RecordStoreError if that is unknown. Does not hold it.

    writes: ask the stores for their time, which writes an object and notices a bucket that is gone. Otherwise this machine's
    clock stands in for theirs.
    """
    for store in stores(cluster, access):
        refuse_held(store, store.now() if writes else datetime.now(UTC))


def unlock(cluster: str, access: Access | None, operation: str, *, take_over: bool, dry_run: bool = False) -> Record:
    """Release the cluster from an operation, by its ID, except in a dry run. Return the former record.

    take_over: also if it is alive; its run notices and stops. Raises LockedError if it is alive and this is not set,
    RefusedError, and RecordStoreError.
    """
    for store in stores(cluster, access):
        kept = store.read(CURRENT)
        record = parse(kept) if kept else None
        if not kept or not record or record.state is OperationState.OVER or record.id != operation:
            continue
        lives, silent_s = liveness(kept, record, datetime.now(UTC) if dry_run else store.now())
        if lives and not take_over:
            raise locked(record, silent_s, lives=True)
        if dry_run:
            return record
        ended = record.model_copy(
            update={
                "run": uuid.uuid4().hex,
                "state": OperationState.OVER,
                "result": f"unlocked by {Holder.this().who}",
                "ended": datetime.now(UTC).replace(microsecond=0),
            }
        )
        try:
            store.replace(CURRENT, ended.to_bytes(), kept.version)
        except ConflictError:  # a heartbeat was faster
            return unlock(cluster, access, operation, take_over=take_over)
        store.put(ended.key, ended.to_bytes())
        return record
    raise RefusedError(
        f"no operation {operation} holds {cluster}; to see the operations: ./menagerie status {cluster} operations",
        code="not-held",
    )


def _past(store: RecordStore, last: int) -> list[Record]:
    """Return the newest records. Their names start with their start time."""
    kept = [store.read(key) for key in store.keys(HISTORY)[-last:]]
    return [parse(entry) for entry in kept if entry]
