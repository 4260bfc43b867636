"""Run one measurement alone: print its figures, the machine, and the machine's load."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from tests.bench import machine
from tests.bench.figures import Figure, table

JsonOpt = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def command(main: Callable[..., None], *expected: type[Exception]) -> None:
    """Run a module with its command line. On an expected error, exit with its text and code 1."""
    try:
        typer.run(main)
    except expected as error:
        sys.exit(f"error: {error}")


def say(text: str) -> None:
    """Print progress to standard error."""
    print(text, file=sys.stderr, flush=True)


def run(measure: Callable[[Callable[[str], None]], list[Figure]], *, as_json: bool) -> None:
    """Measure, and print the figures as a table or as one JSON document. `measure` gets a function for its progress."""
    host, load_before = machine.read(), machine.load()
    figures = measure(say)
    loads = {"before": load_before, "after": machine.load()}
    if as_json:
        document = {"machine": host.to_json(), "load": loads, "figures": [figure.to_json() for figure in figures]}
        print(json.dumps(document, indent=2))
        return
    print(
        f"{host}; load {load_before:.1f} before, {loads['after']:.1f} after (with this run in it)\n\n{table(figures)}"
    )
