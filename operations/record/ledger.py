"""What was done to a cluster, when and by whom; and the way out of a record that nobody will go on with."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime

from clients.access import Access
from cluster.errors import RefusedError
from operations.record.errors import locked
from operations.record.holder import Holder
from operations.record.model import CURRENT, HISTORY, Record, State, parse
from operations.record.store import ConflictError, RecordStore, bucket_store, has_local, local_store
from operations.record.take import look


@dataclass(frozen=True)
class Ledger:
    """current: who holds the cluster, None for nobody; lives: whether that one does; silent_s: since its last heartbeat.

    past: what has ended, newest first. where: the stores that were read, for people.
    """

    where: str
    current: Record | None
    lives: bool
    silent_s: float
    past: tuple[Record, ...]


def stores(cluster: str, access: Access | None) -> tuple[RecordStore, ...]:
    """Where a cluster's records are: its bucket, and what this checkout keeps."""
    bucket = bucket_store(access) if access else None
    return (*((bucket,) if bucket else ()), *((local_store(cluster),) if has_local(cluster) else ()))


def read_ledger(cluster: str, access: Access | None, last: int = 10) -> Ledger:
    """Reads only, so it takes the store's clock for this machine's. Raises RecordStoreError."""
    read = stores(cluster, access)
    past = [record for store in read for record in _past(store, last)]
    past.sort(key=lambda record: record.since, reverse=True)
    where = " and ".join(store.where for store in read) or "there are no records of it yet"
    for store in read:
        kept = store.read(CURRENT)
        found = parse(kept) if kept else None
        if kept and found and found.state is not State.OVER:
            lives, silent_s = look(kept, found, datetime.now(UTC))
            others = [record for record in past if record.id != found.id]
            return Ledger(where, found, lives, silent_s, tuple(others[:last]))
    return Ledger(where, None, False, 0.0, tuple(past[:last]))


def unlock(cluster: str, access: Access | None, operation: str, *, take_over: bool, dry_run: bool = False) -> Record:
    """Free the cluster of an operation, by its id, unless it is a dry run. The record as it was.

    take_over: also while its heartbeat is fresh; its run notices and stops. Raises LockedError without that,
    RefusedError, and RecordStoreError.
    """
    for store in stores(cluster, access):
        kept = store.read(CURRENT)
        found = parse(kept) if kept else None
        if not kept or not found or found.state is State.OVER or found.id != operation:
            continue
        lives, silent_s = look(kept, found, datetime.now(UTC) if dry_run else store.now())
        if lives and not take_over:
            raise locked(found, silent_s, lives=True)
        if dry_run:
            return found
        ended = found.model_copy(
            update={
                "run": uuid.uuid4().hex,
                "state": State.OVER,
                "result": f"unlocked by {Holder.this().who}",
                "ended": datetime.now(UTC).replace(microsecond=0),
            }
        )
        try:
            store.replace(CURRENT, ended.to_bytes(), kept.version)
        except ConflictError:  # a heartbeat was quicker
            return unlock(cluster, access, operation, take_over=take_over)
        store.put(ended.key, ended.to_bytes())
        return found
    raise RefusedError(
        f"no operation {operation} holds {cluster}; who does, and what was done: ./menagerie status {cluster} operations",
        code="not-held",
    )


def _past(store: RecordStore, last: int) -> list[Record]:
    """The newest, by their names, which begin with when they began."""
    kept = [store.read(key) for key in store.keys(HISTORY)[-last:]]
    return [parse(each) for each in kept if each]
