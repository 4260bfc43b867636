"""The line that a rolling verb prints for each host."""

from __future__ import annotations

from rich.text import Text

from cli.output import errors
from operations.rolling import RollOutcome, RollState


def print_outcome(outcome: RollOutcome) -> None:
    """Print whether a host succeeded, after how long, and why not."""
    good = outcome.state is RollState.DONE
    line = f"{'✓' if good else '✗'} {outcome.host}  {outcome.seconds:.0f} s  {outcome.text}".rstrip()
    errors.print(Text(line, style="green" if good else "red"))
