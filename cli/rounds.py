"""Rounds of a verb that runs as a service."""

from __future__ import annotations

import time
from collections.abc import Callable


def without_end(once: Callable[[], object], every_s: int) -> None:
    """A directory, an API or another run that stands in the way is told, and tried again; so is a file with errors."""
    from rich.text import Text

    from cli.output import errors
    from cli.repair_view import told_and_passed_over
    from cluster.load import SpecError

    while True:
        with told_and_passed_over():
            try:
                once()
            except SpecError as error:  # somebody is editing it
                errors.print(Text(str(error), style="red"))
        time.sleep(every_s)
