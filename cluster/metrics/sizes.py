"""Series of each scrape job, and what a Prometheus needs for them: computed from a spec, before anything runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from cluster.metrics.jobs import JOBS
from cluster.metrics.kept import kept_by
from cluster.metrics.model import Job, Per
from cluster.metrics.own import RULES, SCRAPES
from cluster.metrics.units import units
from cluster.spec import Cluster

BYTES_OF_SERIES = 8 * 1024
"""Memory of Prometheus for a series, in bytes: the maintainers' rule for the whole process without queries
(prometheus/prometheus#4553). Newer releases need less ("around 3kB", Robust Perception, Prometheus 2.20); the rest is for
replaying its log after a crash and for queries. Not measured here."""
BYTES_OF_SAMPLE = 2
"""On disk. Prometheus, "Storage": 1 to 2 bytes."""
USABLE = 0.8
"""Share of the disk for samples. Prometheus, "Storage": 80 to 85 %; the rest is its log."""


@dataclass(frozen=True)
class Size:
    """A job's endpoints and series, with the names that are kept. Recording rules have no endpoint."""

    job: Job
    targets: int
    series: int
    kept: tuple[str, ...]

    @property
    def samples_per_s(self) -> float:
        return self.series / self.job.every_s


def sizes(cluster: Cluster) -> tuple[Size, ...]:
    """Return the size of every job that the cluster has endpoints of and that keeps metrics, and of recording rules."""
    counts = units(cluster)
    kept = {job: kept_by(job, cluster.spec.monitoring.keep) for job in JOBS}
    scraped = tuple(_size(job, names, counts) for job, names in kept.items() if counts[job.targets] and names)
    recorded = tuple(RULES.samples())
    return (*scraped, Size(RULES, 0, _series(RULES, recorded, counts, 0), recorded))


def _size(job: Job, kept: tuple[str, ...], counts: Mapping[Per, int]) -> Size:
    targets = counts[job.targets]
    return Size(job, targets, _series(job, kept, counts, targets) + targets * len(SCRAPES.metrics), kept)


def _series(job: Job, kept: tuple[str, ...], counts: Mapping[Per, int], targets: int) -> int:
    samples = job.samples()
    chosen = [samples[name] for name in kept]
    return math.ceil(
        sum(times * (targets if metric.per is Per.TARGET else counts[metric.per]) for metric, times in chosen)
    )


def total(all_sizes: tuple[Size, ...]) -> int:
    """Return the series of all jobs."""
    return sum(size.series for size in all_sizes)


def memory(series: int) -> int:
    """Return the memory that a Prometheus needs, in bytes."""
    return series * BYTES_OF_SERIES


def disk(all_sizes: tuple[Size, ...], retention_ms: int) -> int:
    """Return the size of the disk that keeps all samples for so long, in bytes."""
    per_s = sum(size.samples_per_s for size in all_sizes)
    return math.ceil(per_s * retention_ms / 1000 * BYTES_OF_SAMPLE / USABLE)
