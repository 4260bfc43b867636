"""Alerts and recording rules as a rule file of Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from cluster.spec import Cluster
from components.ceph import alerts as ceph
from components.control_plane.objects import Object
from components.monitoring.alert import Alert
from components.monitoring.alerts import groups
from components.monitoring.recording import RECORDINGS

_EVERY = "1m"
"""Jobs are scraped every 30 or 60 s."""
_WIDTH = 130


def rule_file(cluster: Cluster, *, closed: bool = False) -> Object:
    """Return the content of a rule file. closed: see `components.monitoring.alerts.groups`."""
    recorded = [{"record": each.name, "expr": each.expr} for each in RECORDINGS]
    alerting = [
        {"name": f"menagerie-{name}", "interval": _EVERY, "rules": [rule(alert, cluster.name) for alert in alerts]}
        for name, alerts in groups(cluster, closed=closed).items()
        if alerts
    ]
    return {
        "groups": [{"name": "menagerie-sums", "interval": _EVERY, "rules": recorded}, *alerting, *_of_ceph(cluster)]
    }


def rule(alert: Alert, cluster: str) -> Object:
    """Return an alerting rule. The label `cluster` tells clusters apart that share an Alertmanager."""
    return {
        "alert": alert.name,
        "expr": alert.expr,
        **({} if alert.holds == "0m" else {"for": alert.holds}),
        "labels": {"severity": alert.severity.value if alert.severity else "none", "cluster": cluster},
        "annotations": {
            "summary": alert.says,
            "description": alert.means,
            "runbook": alert.page,
            "first": alert.command(cluster),
        },
    }


def _of_ceph(cluster: Cluster) -> Iterator[Object]:
    """Yield the groups of sites with Ceph, which their ConfigMap has, too."""
    for name, site in cluster.spec.sites.items():
        if site.ceph:
            yield from ({**group, "name": f"menagerie-ceph-{name}"} for group in ceph.groups(site.ceph)["groups"])


def text(cluster: Cluster, *, closed: bool = False) -> str:
    """Return the rule file in YAML, with a head that says what is left out."""
    body = yaml.safe_dump(rule_file(cluster, closed=closed), sort_keys=False, width=_WIDTH, allow_unicode=True)
    return "".join(f"# {line}\n" for line in _head(cluster, closed=closed)) + body


def _head(cluster: Cluster, *, closed: bool) -> Iterator[str]:
    yield f"Rules for the Prometheus of cluster {cluster.name}, by `./menagerie show alerts {cluster.name}`."
    yield "They rely on names of jobs and on labels: docs/how-to/monitoring.md"
    left_out = {alert.name for alert in _all(cluster, closed=True)} - {
        alert.name for alert in _all(cluster, closed=closed)
    }
    if left_out:
        yield f"Left out, because no Prometheus reaches their endpoints yet (--all adds them): {', '.join(sorted(left_out))}"


def _all(cluster: Cluster, *, closed: bool) -> Iterator[Alert]:
    for alerts in groups(cluster, closed=closed).values():
        yield from alerts
