"""A program's metrics in Prometheus' text format: samples, histograms, and the difference of two readings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from prometheus_client.parser import text_string_to_metric_families

Labels = Mapping[str, str]
Buckets = dict[float, float]
"""Upper bound -> number of observations at or below it; the largest bound is infinite."""


def samples(text: str, name: str) -> Iterator[tuple[Labels, float]]:
    """Yield (labels, value) of every sample of a metric."""
    lines = "".join(f"{line}\n" for line in text.splitlines() if line.startswith(name))
    for family in text_string_to_metric_families(lines):
        yield from ((sample.labels, sample.value) for sample in family.samples if sample.name == name)


def total(text: str, name: str, **expected: str) -> float:
    """Return the sum of a metric's samples with these labels; 0 without any: counters appear with their first count."""
    return sum(value for labels, value in samples(text, name) if expected.items() <= labels.items())


def histograms(text: str, name: str, key: Callable[[Labels], str | None]) -> dict[str, Buckets]:
    """Return a histogram's buckets by key, summed for equal keys. Samples with a key of None are left out."""
    by_key: dict[str, Buckets] = {}
    for labels, value in samples(text, f"{name}_bucket"):
        if (group := key(labels)) is not None:
            buckets = by_key.setdefault(group, {})
            bound = float(labels["le"])
            buckets[bound] = buckets.get(bound, 0.0) + value
    return by_key


def between(before: Mapping[str, Buckets], after: Mapping[str, Buckets]) -> dict[str, Buckets]:
    """Return what was counted after the first reading, without keys that counted nothing."""
    counted = {
        key: {bound: count - before.get(key, {}).get(bound, 0.0) for bound, count in buckets.items()}
        for key, buckets in after.items()
    }
    return {key: buckets for key, buckets in counted.items() if buckets[math.inf] > 0}


def quantile(buckets: Buckets, share: float) -> float:
    """Return a quantile like PromQL's histogram_quantile: linear interpolation inside a bucket; the last bucket's lower bound.

    ValueError if nothing was observed.
    """
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
