"""Why an operation may not begin or go on: somebody else has the cluster."""

from __future__ import annotations

from cluster.errors import LockedError
from operations.record.model import Record, State, ago


def locked(record: Record, silent_s: float, *, lives: bool) -> LockedError:
    """Somebody else's operation holds the cluster, or one has to be gone on with first."""
    named = f"{record.cluster} is locked by {record.held_by}, last heard of {ago(silent_s)}."
    unlock = f"./menagerie unlock {record.cluster} --operation {record.id}"
    if lives:
        return LockedError(
            f"{named} Wait for its end, which this shows: ./menagerie operations {record.cluster}\n"
            f"  if you know that it does nothing any more: {unlock} --take-over"
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
            f"  who does what now: ./menagerie operations {own.cluster}"
        )
