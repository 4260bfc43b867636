"""Rounds of a verb that runs as a service."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from cli.failures import explain
from clients import logs
from clients.lease import Lease, LostTheLockError
from cluster.errors import RefusedError
from cluster.problems import SpecError

log = logging.getLogger(__name__)


def without_end(
    once: Callable[[], object],
    every_s: float,
    lease: Lease | None = None,
    failed: Callable[[], None] = lambda: None,
) -> None:
    """Run rounds without end, and log. A failed round is logged and retried. A refusal ends the service, except a spec with errors.

    lease: held meanwhile; None if the rounds change nothing or hold their own. failed: called after each failed round.
    Errors: raises HeldError if another process holds the Lease, LostTheLockError when it is lost.
    """
    logs.set_up()
    with lease.holding(report=log.info) if lease else nullcontext():
        while True:
            if lease:
                lease.check()
            with _logged(failed):
                once()
            time.sleep(every_s)


@contextmanager
def _logged(failed: Callable[[], None]) -> Iterator[None]:
    """Log an error that the next round may not have, or errors of a spec, which somebody may be editing. Raise other refusals."""
    try:
        yield
    except LostTheLockError:
        raise
    except SpecError as error:
        log.error("%s", error)
        failed()
    except Exception as error:
        foreseen = explain(error)
        if foreseen is None or isinstance(error, RefusedError):
            raise
        log.error("%s", foreseen.text)
        failed()
