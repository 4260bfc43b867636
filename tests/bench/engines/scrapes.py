"""Scrapes that lack, from the samples that an engine has. Pure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Samples = Mapping[str, Sequence[tuple[float, float]]]
"""Target -> (seconds since the epoch, value), by time."""


def parsed(result: Iterable[Mapping[str, Any]]) -> Samples:
    """Return the series of an answer of the HTTP API by their label `target`. Marks of stale series (NaN) are left out."""
    series = {}
    for each in result:
        values = ((float(at), float(text if text is not None else "nan")) for at, text in each["values"])
        series[each["metric"].get("target", "")] = [(at, value) for at, value in values if not math.isnan(value)]
    return series


def missed(ups: Samples, targets: int, every_s: float, began: float, ended: float) -> int:
    """Return how many scrapes of `up` lack or failed between two times, over all targets."""
    return sum(_missed(ups.get(f"t{number}", ()), every_s, began, ended) for number in range(targets))


def _missed(ups: Sequence[tuple[float, float]], every_s: float, began: float, ended: float) -> int:
    good = [at for at, value in ups if value == 1 and began <= at <= ended]
    return sum(max(0, round((later - at) / every_s) - 1) for at, later in itertools.pairwise([began, *good, ended]))


def longest_pause(samples: Samples, began: float, ended: float) -> float:
    """Return the longest time in seconds without a sample of any series between two times."""
    times = sorted(at for values in samples.values() for at, _ in values if began <= at <= ended)
    return max(later - at for at, later in itertools.pairwise([began, *times, ended]))
