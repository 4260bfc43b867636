"""A cluster's lock: holding it as the command line says, and waiting for the current holder."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from cli.holding import without_record
from cli.output import note
from clients.access import Access
from cluster.spec import Cluster
from operations import record
from operations.record import InUseError, Operation


def hold(
    cluster: Cluster, access: Access | None, verb: str, about: str = "", *, options: str = "", repeatable: bool = False
) -> AbstractContextManager[Operation]:
    """Call `operations.record.one_operation` with the command line's options."""
    return record.one_operation(
        cluster,
        access,
        verb,
        about,
        options=options,
        repeatable=repeatable,
        without_record=without_record.get(),
        report=note,
    )


def when_free(verb: Callable[[], None], wait_s: float) -> None:
    """Run a verb; if another run holds the cluster, wait for it and run the verb again from its start.

    Errors: raises InUseError when the time is over.
    """
    until = time.monotonic() + wait_s
    while True:
        try:
            verb()
            return
        except InUseError as error:
            left = until - time.monotonic()
            if left <= 0:
                raise
            note(f"{error.record.cluster} is locked by {error.record.held_by}; waiting up to {left:.0f} s")
            if not error.ends_within(left):
                raise
