"""Rounds of a verb that runs as a service."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from operations.lease import Lease


def without_end(once: Callable[[], object], every_s: int, lease: Lease | None) -> None:
    """A directory, an API or another run that stands in the way is told, and tried again; so is a file with errors.

    lease: held for as long; None of what changes nothing. HeldError where another holds it, LostTheLockError once it is lost.
    """
    from rich.text import Text

    from cli.output import errors
    from cli.repair_view import told_and_passed_over
    from cluster.load import SpecError

    with lease.holding() if lease else nullcontext():
        while True:
            if lease:
                lease.check()
            with told_and_passed_over():
                try:
                    once()
                except SpecError as error:  # somebody is editing it
                    errors.print(Text(str(error), style="red"))
            time.sleep(every_s)
