"""The alerts of a cluster. docs/reference/alerts.md lists them."""

from __future__ import annotations

from collections.abc import Iterator

from cluster.metrics.sizes import sizes
from cluster.spec import Cluster
from components.monitoring.alert import Alert
from components.monitoring.alerts import control_plane, etcds, gpus, nodes, own
from components.monitoring.endpoints import endpoints

GROUPS: dict[str, tuple[Alert, ...]] = {
    "control-plane": control_plane.ALERTS,
    "etcd": etcds.ALERTS,
    "nodes": nodes.ALERTS,
    "gpus": gpus.ALERTS,
    "own": own.ALERTS,
}


def groups(cluster: Cluster, *, closed: bool = False) -> dict[str, tuple[Alert, ...]]:
    """Return group -> alerts that make sense for a cluster.

    closed: also those that read endpoints which no Prometheus reaches yet. They would fire, or never fire, for no reason.
    """
    present = frozenset(jobs(cluster, closed=True))
    readable = frozenset(jobs(cluster, closed=closed))
    chosen = {name: tuple(_sensible(alerts, present, readable)) for name, alerts in GROUPS.items()}
    of_itself = (own.missing(jobs(cluster, closed=closed)), own.too_many(cluster.spec.monitoring.max_series))
    return {**chosen, "monitoring": of_itself}


def _sensible(alerts: tuple[Alert, ...], present: frozenset[str], readable: frozenset[str]) -> Iterator[Alert]:
    """Yield the alerts whose jobs Prometheus reads, for what the cluster has."""
    for alert in alerts:
        own = present.intersection(alert.jobs)
        if bool(own) == bool(alert.jobs) and own <= readable and (not alert.when or alert.when in present):
            yield alert


def jobs(cluster: Cluster, *, closed: bool = False) -> tuple[str, ...]:
    """Return the jobs that the cluster has endpoints of. closed: also those that no Prometheus reaches yet."""
    places = endpoints(cluster)
    return tuple(
        size.job.name for size in sizes(cluster) if size.targets and (closed or not places[size.job.name].closed)
    )
