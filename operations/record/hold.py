"""A cluster held for the length of a block."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from clients.access import Access
from cluster.spec import Cluster
from operations.record.errors import TakenOverError
from operations.record.holder import Holder
from operations.record.model import CURRENT, Record, State, now, parse
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
    repeatable: bool = False,
    without_record: bool = False,
    report: Report = lambda _: None,
) -> Iterator[Operation]:
    """Hold the cluster for a block; `report` hears what an operator should know of it.

    access: None where the cluster is not built yet. about: of the command line, what comes after the cluster's name.
    repeatable: whatever this verb leaves half done stands in no other verb's way. Of another verb, a run that ends by an
    error with steps done holds the cluster until the same verb goes on with it, or somebody unlocks it.
    without_record: go on where the bucket does not answer, with a record that other machines don't see.

    Raises LockedError and RecordStoreError before the block, and TakenOverError out of it.
    """
    holder, began = Holder.this(), now()
    own = Record(
        id=uuid.uuid4().hex[:8], run=uuid.uuid4().hex, cluster=cluster.name, verb=verb, about=about,
        repeatable=repeatable, holder=holder, since=began, heartbeat=began,
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
    """Let operators on other machines see a run that began before there was a bucket. LockedError where one has begun too."""
    store = None if operation.is_shared else bucket_store(access)
    if store is None:
        return
    try:
        take(store, operation.record, report)
    except RecordStoreError as error:
        report(f"{error}; operators on other machines still don't see this run")
        return
    operation.move(store)
    over = operation.record.model_copy(update={"state": State.OVER, "result": "went on in the bucket", "ended": now()})
    local_store(over.cluster).put(CURRENT, over.to_bytes())


def keep(operation: Operation) -> None:
    """Go on in this checkout: the bucket went with the cluster."""
    if operation.is_shared:
        operation.move(local_store(operation.record.cluster))


def _begin(own: Record, access: Access | None, *, without_record: bool, report: Report) -> Operation:
    store = bucket_store(access) if access else None
    here = local_store(own.cluster)
    if store is None:
        if access:
            report(f"{own.cluster} has no bucket for records yet: operators on other machines don't see this run")
        return take(here, own, report)
    carried = _left_here(here, own, report)
    try:
        operation = take(store, carried, report)
    except RecordStoreError as error:
        if not without_record:
            raise RecordStoreError(
                f"{error}\n  nothing was touched, for nobody else would know of this run on {own.cluster}\n"
                f"  if nobody else works on it: {own.command} --without-record"
            ) from None
        report(f"{error}; goes on with a record that operators on other machines don't see")
        return take(here, own, report)
    operation.resumed |= carried.id != own.id
    return operation


def _left_here(here: RecordStore, own: Record, report: Report) -> Record:
    """`own`, or what a run without the bucket left in this checkout, which is then gone on with. Raises LockedError."""
    kept = here.read(CURRENT)
    found = parse(kept) if kept else None
    is_ours = found is not None and found.state is State.RUNNING and found.holder == own.holder
    if found is None or found.state is State.OVER or is_ours:
        return own
    left = take(here, own, report)
    left.close("went on in the bucket")
    return left.record.model_copy(update={"state": State.RUNNING, "result": "", "ended": None})


def _end(operation: Operation, error: BaseException | None, report: Report) -> None:
    """The work is done or has failed; that its record can't be written changes nothing of that."""
    try:
        operation.end(error)
    except TakenOverError:
        return
    except RecordStoreError as problem:
        report(f"that this run has ended could not be written, so it counts as dead in two minutes: {problem}")
        ended = operation.record.ending(error)
        local_store(ended.cluster).put(ended.key, ended.to_bytes())
