"""What a program says of itself in Prometheus' text format: samples, histograms, and what came about between two readings."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping

Labels = Mapping[str, str]
Buckets = dict[float, float]
"""Upper bound -> how many were at or below it; the largest bound is infinite."""

_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def samples(text: str, name: str) -> Iterator[tuple[Labels, float]]:
    """(labels, value) of every sample of a metric."""
    for line in text.splitlines():
        if line.startswith(name) and line[len(name) : len(name) + 1] in ("{", " "):
            labels, _, value = line[len(name) :].rpartition(" ")
            yield dict(_LABEL.findall(labels)), float(value)


def total(text: str, name: str, **wanted: str) -> float:
    """Sum of a metric's samples that have these labels; 0 where there is none: counters come with their first count."""
    return sum(value for labels, value in samples(text, name) if wanted.items() <= labels.items())


def histograms(text: str, name: str, key: Callable[[Labels], str | None]) -> dict[str, Buckets]:
    """A histogram's buckets, those with equal keys added up; a key of None leaves a sample out."""
    found: dict[str, Buckets] = {}
    for labels, value in samples(text, f"{name}_bucket"):
        if (group := key(labels)) is not None:
            buckets = found.setdefault(group, {})
            bound = float(labels["le"])
            buckets[bound] = buckets.get(bound, 0.0) + value
    return found


def between(before: Mapping[str, Buckets], after: Mapping[str, Buckets]) -> dict[str, Buckets]:
    """What was counted after the first reading, without keys where nothing was."""
    more = {
        key: {bound: count - before.get(key, {}).get(bound, 0.0) for bound, count in buckets.items()}
        for key, buckets in after.items()
    }
    return {key: buckets for key, buckets in more.items() if buckets[math.inf] > 0}


def quantile(buckets: Buckets, share: float) -> float:
    """The value that a share of the observations is at or below, as PromQL's histogram_quantile has it: straight lines
    inside a bucket, and of the last one its lower bound. ValueError when nothing was observed."""
    count = buckets.get(math.inf, 0.0)
    if not count:
        raise ValueError("a histogram without observations has no quantile")
    lower, below = 0.0, 0.0
    for bound, reached in sorted(buckets.items()):
        if reached >= share * count:
            if bound == math.inf or reached == below:
                return lower
            return lower + (bound - lower) * (share * count - below) / (reached - below)
        lower, below = bound, reached
    raise AssertionError("the infinite bucket has every observation")
