"""Errors of operations that may not start or continue because another run holds the cluster."""

from __future__ import annotations

import time
from collections.abc import Callable

from cluster.errors import LockedError
from cluster.waiting import poll
from operations.record.model import OperationState, Record, ago

_LOOK_S = 5.0


class InUseError(LockedError):
    """Another operation holds the cluster and is alive. ended: returns whether it has ended."""

    def __init__(self, text: str, record: Record, ended: Callable[[], bool]) -> None:
        super().__init__(text)
        self.record, self._ended = record, ended

    def ends_within(self, seconds: float, pause: Callable[[float], None] = time.sleep) -> bool:
        """Wait for the end of the operation. Return whether it has ended."""
        return poll(self._ended, seconds, _LOOK_S, pause)


def locked(record: Record, silent_s: float, *, lives: bool, ended: Callable[[], bool] = lambda: False) -> LockedError:
    """Return the error for a cluster that is held by another operation, or by an interrupted one that must be
    resumed first."""
    named = f"{record.cluster} is locked by {record.held_by}, last heard of {ago(silent_s)}."
    unlock = f"./menagerie unlock {record.cluster} --operation {record.id}"
    if lives:
        return InUseError(
            f"{named} Wait until it ends; to watch it: ./menagerie status {record.cluster} operations\n"
            f"  if you are sure that it no longer runs: {unlock} --take-over",
            record,
            ended,
        )
    done = ", ".join(step.name for step in record.steps) or "none"
    return LockedError(
        f"{named} It was interrupted; completed steps: {done}.\n"
        f"  to resume it: {record.command}\n"
        f"  or, when you have cleaned up what it left unfinished: {unlock}"
    )


class TakenOverError(LockedError):
    """Another run has taken over the cluster, so this run has stopped."""

    code = "taken-over"

    def __init__(self, own: Record, by: Record | None) -> None:
        reason = f"taken over by {by.held_by}" if by else "ended: its record is gone, or belongs to a newer Menagerie"
        if by and by.state is OperationState.OVER:
            reason = f"ended: {by.result}"
        super().__init__(
            f'this run of "{own.what}" on {own.cluster} was {reason}; it has stopped\n'
            f"  to see who runs what now: ./menagerie status {own.cluster} operations"
        )
