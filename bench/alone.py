"""A measurement that is run by itself: what it saw, on which machine, and how busy that was."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from bench import machine
from bench.figures import Figure, table


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
