"""Why an operation may not begin or go on: somebody else has the cluster."""

from __future__ import annotations

import time
from collections.abc import Callable

from cluster.errors import LockedError
from operations.record.model import Record, State, ago

_LOOK_S = 5.0


class InUseError(LockedError):
    """Somebody else's operation holds the cluster, and is alive. ended: whether it still does."""

    def __init__(self, text: str, record: Record, ended: Callable[[], bool]) -> None:
        super().__init__(text)
        self.record, self._ended = record, ended

    def ends_within(self, seconds: float, pause: Callable[[float], None] = time.sleep) -> bool:
        """Wait for the end of the operation; whether it came."""
        until = time.monotonic() + seconds
        while not (ended := self._ended()) and (left := until - time.monotonic()) > 0:
            pause(min(_LOOK_S, left))
        return ended


def locked(record: Record, silent_s: float, *, lives: bool, ended: Callable[[], bool] = lambda: False) -> LockedError:
    """Somebody else's operation holds the cluster, or one has to be gone on with first."""
    named = f"{record.cluster} is locked by {record.held_by}, last heard of {ago(silent_s)}."
    unlock = f"./menagerie unlock {record.cluster} --operation {record.id}"
    if lives:
        return InUseError(
            f"{named} Wait for its end, which this shows: ./menagerie status {record.cluster} operations\n"
            f"  if you know that it does nothing any more: {unlock} --take-over",
            record,
            ended,
        )
    done = ", ".join(step.name for step in record.steps) or "no step"
    return LockedError(
        f"{named} It was cut short; done are: {done}.\n"
        f"  go on with it: {record.command}\n"
        f"  or, when you have seen to what it left half done: {unlock}"
    )


class TakenOverError(LockedError):
    """Somebody else has the cluster now, so this run has stopped."""

    code = "taken-over"

    def __init__(self, own: Record, by: Record | None) -> None:
        whom = f"taken over by {by.held_by}" if by else "ended: its record is gone, or a newer Menagerie's"
        if by and by.state is State.OVER:
            whom = f"ended: {by.result}"
        super().__init__(
            f'this run of "{own.what}" on {own.cluster} was {whom}; it has stopped where it was\n'
            f"  who does what now: ./menagerie status {own.cluster} operations"
        )
