"""Which metrics are kept: those that a rule or a dashboard reads, and those that a spec adds.

kept.json has the first, as job -> names in the text format. `make golden` writes it from the expressions of
`components.monitoring`, which may not be imported here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from cluster.metrics.jobs import JOBS
from cluster.metrics.model import Job
from cluster.metrics.own import SCRAPES

FILE = Path(__file__).parent / "kept.json"


@cache
def used() -> Mapping[str, tuple[str, ...]]:
    """Return job -> names that rules and dashboards read."""
    return {job: tuple(names) for job, names in json.loads(FILE.read_text(encoding="utf-8")).items()}


def kept_by(job: Job, more: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the names that a job keeps, sorted. more: further names, each kept by every job that has it."""
    own = set(more) & set(job.samples())
    return tuple(sorted(own | set(used().get(job.name, ()))))


@cache
def known() -> frozenset[str]:
    """Return every name of the catalogue."""
    own = {metric.name for metric in SCRAPES.metrics}
    return frozenset(own.union(*(job.samples() for job in JOBS)))
