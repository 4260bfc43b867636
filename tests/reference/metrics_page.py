"""docs/reference/metrics.md: every metric that the catalogues of `cluster.metrics` have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cluster.metrics.jobs import JOBS
from cluster.metrics.kept import used
from cluster.metrics.model import Job, Kind, Metric, Per
from cluster.metrics.own import RULES
from tests.reference import markdown

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
_HEAD = """\
# Metrics

For operators of a Prometheus: the metrics that `check` and `show monitoring` count, by scrape job. `make golden` writes this page
from `cluster/metrics/`.

- **Bold** metrics are kept: an alert or a dashboard reads them. `monitoring.keep` keeps others of this page, too.
- *Series* are for one of what they grow with. A histogram counts as all its buckets, its sum and its count; of a kept one only the
  buckets are.
- The names are from the sources of the programs, in the version that is named. [metrics.md](../explanation/metrics.md) says which
  have been compared with a program that runs.
"""


def rendered() -> str:
    """Return the text of the page."""
    return _HEAD + "".join(map(_section, (*JOBS, RULES)))


def _section(job: Job) -> str:
    head = f"\n## {job.name}\n\n{job.about[0].upper()}{job.about[1:]}; every {job.every_s} s. Source: {job.exporter.source}.\n\n"
    return head + markdown.table(
        ("metric", "labels", "series"), (tuple(_row(job, each)) for each in job.exporter.metrics)
    )


def _row(job: Job, metric: Metric) -> Iterator[str]:
    kept = job is RULES or any(name in used()[job.name] for name, _ in metric.samples())
    yield f"**`{metric.name}`**" if kept else f"`{metric.name}`"
    yield ", ".join(f"`{label}`" for label in metric.labels)
    yield f"{_number(metric)} for each {metric.per if metric.per is not Per.TARGET else 'endpoint'}"


def _number(metric: Metric) -> str:
    series = sum(times for _, times in metric.samples())
    return f"{series:,.0f} ({metric.buckets + 1} buckets)" if metric.kind is Kind.HISTOGRAM else f"{series:,.0f}"
