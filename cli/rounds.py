"""Rounds of a verb that runs as a service."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from cli import exits

if TYPE_CHECKING:
    from clients.lease import Lease


def without_end(
    once: Callable[[], object],
    every_s: float,
    lease: Lease | None = None,
    failed: Callable[[], None] = lambda: None,
) -> None:
    """A directory, an API or another run that stands in the way is told, and tried again; so is a file with errors.

    lease: held for as long; None of what changes nothing, or holds its own. failed: called after each round that was cut short so.
    HeldError where another holds the Lease, LostTheLockError once it is lost.
    """
    from cli.output import note

    with lease.holding(report=note) if lease else nullcontext():
        while True:
            if lease:
                lease.check()
            with _told_and_passed_over(failed):
                once()
            time.sleep(every_s)


@contextmanager
def _told_and_passed_over(failed: Callable[[], None]) -> Iterator[None]:
    """Of what was foreseen, and will pass."""
    from rich.text import Text

    from cli.failures import explain
    from cli.output import errors
    from clients.lease import LostTheLockError
    from cluster.load import SpecError

    try:
        yield
    except LostTheLockError:
        raise
    except SpecError as error:  # somebody is editing it
        errors.print(Text(str(error), style="red"))
        failed()
    except Exception as error:
        foreseen = explain(error)
        if foreseen is None or foreseen.exit_code == exits.BAD_INPUT:
            raise
        errors.print(Text(f"error: {foreseen.text}", style="red"))
        failed()
