"""A measurement that is run by itself: what it saw, on which machine, and how busy that was."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from tests.bench import machine
from tests.bench.figures import Figure, table

JsonOpt = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def command(main: Callable[..., None], *foreseen: type[Exception]) -> None:
    """Run a module by its command line. An error that was foreseen ends it with its text and exit code 1."""
    try:
        typer.run(main)
    except foreseen as error:
        sys.exit(f"error: {error}")


def say(text: str) -> None:
    """Progress, beside the result."""
    print(text, file=sys.stderr, flush=True)


def run(measure: Callable[[Callable[[str], None]], list[Figure]], *, as_json: bool) -> None:
    """Measure, and print the figures as a table or as one JSON document. measure: is given who hears of its progress."""
    here, before = machine.read(), machine.load()
    figures = measure(say)
    loads = {"before": before, "after": machine.load()}
    if as_json:
        document = {"machine": here.to_json(), "load": loads, "figures": [each.to_json() for each in figures]}
        print(json.dumps(document, indent=2))
        return
    print(f"{here}; load {before:.1f} before, {loads['after']:.1f} after (with this run in it)\n\n{table(figures)}")
