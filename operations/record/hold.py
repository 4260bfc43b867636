"""Holds a cluster for the length of a block."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from clients.access import Access
from cluster.revision import revision
from cluster.spec import Cluster
from operations.record.errors import TakenOverError
from operations.record.holder import Holder
from operations.record.model import CURRENT, OperationState, Record, now, parse
from operations.record.operation import Operation, Report
from operations.record.store import RecordStore, RecordStoreError, bucket_store, local_store
from operations.record.take import take


@contextmanager
def one_operation(
    cluster: Cluster,
    access: Access | None,
    verb: str,
    about: str = "",
    *,
    options: str = "",
    repeatable: bool = False,
    without_record: bool = False,
    report: Report = lambda _: None,
) -> Iterator[Operation]:
    """Hold the cluster for the length of a block. report: gets notes for the operator.

    access: None if the cluster is not built yet. about: the part of the command line after the cluster's name. options: others of
    its options, for readers of the record.
    repeatable: an unfinished run of this verb blocks no other verb. Without it, a run that fails after completed steps holds
    the cluster until the same verb resumes it or an operator unlocks it. without_record: if the bucket does not respond,
    continue with a record that other machines don't see.

    Raises LockedError and RecordStoreError before the block, and TakenOverError from it.
    """
    holder, started = Holder.this(), now()
    own = Record(
        id=uuid.uuid4().hex[:8], run=uuid.uuid4().hex, cluster=cluster.name, verb=verb, about=about, options=options,
        toolkit=str(revision()), repeatable=repeatable, holder=holder, since=started, heartbeat=started,
    )  # fmt: skip
    operation = _begin(own, access, without_record=without_record, report=report)
    try:
        with operation.beating(report):
            yield operation
    except BaseException as error:
        _end(operation, error, report)
        if operation.lost and not isinstance(error, TakenOverError):
            raise operation.lost from error
        raise
    _end(operation, operation.outcome, report)
    operation.check()


def share(operation: Operation, access: Access, report: Report) -> None:
    """Move the record of a run that started without a bucket into the bucket. Raises LockedError if another run holds it."""
    store = None if operation.is_shared else bucket_store(access)
    if store is None:
        return
    try:
        take(store, operation.record, report)
    except RecordStoreError as error:
        report(f"{error}; operators on other machines still can't see this run")
        return
    operation.move(store)
    over = operation.record.model_copy(
        update={"state": OperationState.OVER, "result": "went on in the bucket", "ended": now()}
    )
    local_store(over.cluster).put(CURRENT, over.to_bytes())


def keep(operation: Operation) -> None:
    """Continue the record in this checkout: the bucket was deleted with the cluster."""
    if operation.is_shared:
        operation.move(local_store(operation.record.cluster))


def _begin(own: Record, access: Access | None, *, without_record: bool, report: Report) -> Operation:
    store = bucket_store(access) if access else None
    here = local_store(own.cluster)
    if store is None:
        if access:
            report(f"{own.cluster} has no bucket for records yet: operators on other machines can't see this run")
        return take(here, own, report)
    carried = _left_here(here, own, report)
    try:
        operation = take(store, carried, report)
    except RecordStoreError as error:
        if not without_record:
            raise RecordStoreError(
                f"{error}\n  Nothing was changed, because other operators could not see this run on {own.cluster}.\n"
                f"  if no other operation is running on it: {own.command} --without-record"
            ) from None
        report(f"{error}; continuing with a record that operators on other machines can't see")
        return take(here, own, report)
    operation.resumed |= carried.id != own.id
    return operation


def _left_here(here: RecordStore, own: Record, report: Report) -> Record:
    """Return `own`, or the record that a run without the bucket left in this checkout, to resume it. Raises LockedError."""
    kept = here.read(CURRENT)
    record = parse(kept) if kept else None
    is_ours = record is not None and record.state is OperationState.RUNNING and record.holder == own.holder
    if record is None or record.state is OperationState.OVER or is_ours:
        return own
    left = take(here, own, report)
    left.close("went on in the bucket")
    return left.record.model_copy(update={"state": OperationState.RUNNING, "result": "", "ended": None})


def _end(operation: Operation, error: BaseException | None, report: Report) -> None:
    """Write the end of the operation. If that fails, only report it: the work itself is done or has failed already."""
    try:
        operation.end(error)
    except TakenOverError:
        return
    except RecordStoreError as problem:
        report(f"the end of this run could not be recorded, so it is considered dead in two minutes: {problem}")
        ended = operation.record.ending(error)
        local_store(ended.cluster).put(ended.key, ended.to_bytes())
