"""Rounds of a verb that runs as a service."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clients.lease import Lease


def without_end(
    once: Callable[[], object],
    every_s: float,
    lease: Lease | None = None,
    failed: Callable[[], None] = lambda: None,
) -> None:
    """Run rounds without end. A failed round is reported and retried. A refusal ends the service, except a spec with errors.

    lease: held meanwhile; None if the rounds change nothing or hold their own. failed: called after each failed round.
    Errors: raises HeldError if another process holds the Lease, LostTheLockError when it is lost.
    """
    from cli.output import note

    with lease.holding(report=note) if lease else nullcontext():
        while True:
            if lease:
                lease.check()
            with _reported(failed):
                once()
            time.sleep(every_s)


@contextmanager
def _reported(failed: Callable[[], None]) -> Iterator[None]:
    """Report an error that the next round may not have, or errors of a spec, which somebody may be editing. Raise other refusals."""
    from rich.text import Text

    from cli.failures import explain
    from cli.output import errors
    from clients.lease import LostTheLockError
    from cluster.errors import RefusedError
    from cluster.problems import SpecError

    try:
        yield
    except LostTheLockError:
        raise
    except SpecError as error:
        errors.print(Text(str(error), style="red"))
        failed()
    except Exception as error:
        foreseen = explain(error)
        if foreseen is None or isinstance(error, RefusedError):
            raise
        errors.print(Text(f"error: {foreseen.text}", style="red"))
        failed()
