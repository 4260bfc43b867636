"""docs/reference/alerts.md: every alert, from `components.monitoring.alerts`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cluster.monitoring import MOST_SERIES
from components.monitoring.alert import Alert
from components.monitoring.alerts import GROUPS, own
from components.monitoring.recording import RECORDINGS
from tests.reference import markdown

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "alerts.md"
_HEAD = """\
# Alerts

For on-call engineers, and for operators of a Prometheus: every alert, what it means, and the first command. `make golden` writes
this page from `components/monitoring/`.

```
./menagerie show alerts jaguar > jaguar.rules.yaml     # those that make sense for a cluster, as a rule file
./menagerie show alerts jaguar --json                  # with meaning, runbook and first command
```

- **critical**: look at once, also at night. **warning**: look in working hours.
- *Jobs* are the scrape jobs that an alert reads. `show alerts` leaves an alert out while nothing reaches the endpoints of one of its
  jobs; `--all` adds it. [monitoring.md](../how-to/monitoring.md) says which they are.
- No alert has been fired by a real fault yet, and no threshold is measured: the file of each says where it is from.
"""
_TITLES = {
    "control-plane": "API servers, scheduling and add-ons",
    "etcd": "etcd",
    "nodes": "Nodes",
    "gpus": "GPUs and RDMA",
    "own": "Menagerie's programs, and monitoring itself",
    "monitoring": "Completeness of monitoring",
}


def rendered() -> str:
    """Return the text of the page."""
    of_itself = (own.missing(["…"]), own.too_many(MOST_SERIES))
    groups = {**GROUPS, "monitoring": of_itself}
    sections = (f"\n## {_TITLES[group]}\n\n{_table(alerts)}" for group, alerts in groups.items())
    return _HEAD + _sums(groups) + "".join(sections) + _recorded()


def _sums(groups: dict[str, tuple[Alert, ...]]) -> str:
    return (
        f"- There are {sum(map(len, groups.values()))} alerts, without those on Ceph ([ceph.md](../how-to/ceph.md)).\n"
    )


def _table(alerts: tuple[Alert, ...]) -> str:
    return markdown.table(("alert", "fires when", "means", "jobs", "first"), map(tuple, map(_row, alerts)))


def _row(alert: Alert) -> Iterator[str]:
    severity = f"**{alert.severity}**" if alert.severity else "for a machine"
    yield f"{markdown.anchored(alert.name.lower(), f'`{alert.name}`')}<br>{severity}"
    yield f"{markdown.code(alert.expr)}<br>for {alert.holds}" if alert.holds != "0m" else markdown.code(alert.expr)
    yield markdown.prose(alert.means)
    yield ", ".join(alert.jobs) or "all"
    yield f"`{alert.first}`<br>[{alert.runbook}.md](../runbooks/{alert.runbook}.md)"


def _recorded() -> str:
    rows = ((f"`{each.name}`", markdown.code(each.expr), markdown.prose(each.says)) for each in RECORDINGS)
    return f"\n## Recording rules\n\n{markdown.table(('metric', 'is', 'means'), rows)}"
