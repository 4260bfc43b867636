"""`show monitoring`, `alerts`, `receivers`, `dashboards`: what a Prometheus of your own needs to watch a cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer
from rich.text import Text

from cli.output import console, note, print_json, write_out
from cluster.counts import gibibytes
from cluster.errors import RefusedError
from cluster.metrics import sizes
from cluster.metrics.sizes import Size
from cluster.quantities import format_duration_ms
from cluster.spec import Cluster
from cluster.writing import bears, write
from components.monitoring import receivers, rules
from components.monitoring.alert import Alert
from components.monitoring.alerts import groups
from components.monitoring.dashboards import DASHBOARDS
from components.monitoring.endpoints import Endpoint, endpoints
from components.monitoring.grafana import grafana


def show_sizes(cluster: Cluster, *, as_json: bool) -> None:
    """Print each scrape job with its endpoints, its series and the metrics that it keeps; and what Prometheus needs."""
    _refuse_if_off(cluster)
    jobs, places = sizes.sizes(cluster), endpoints(cluster)
    if as_json:
        print_json(_sizes(cluster, jobs, places))
        return
    for size in jobs:
        console.print(
            f"{size.job.name:<24} {size.targets or '':>7} {size.series:>10,}  ", _reached(size, places), sep=""
        )
    series = sizes.total(jobs)
    settings = cluster.spec.monitoring
    disk, kept = gibibytes(sizes.disk(jobs, settings.retention)), format_duration_ms(settings.retention)
    console.print(
        f"{series:,} series of {settings.max_series:,}; {gibibytes(sizes.memory(series))} of memory, {disk} of disk for {kept}"
    )
    console.print()
    for size in jobs:
        if size.targets:
            console.print(Text.assemble((f"{size.job.name}  ", "bold"), "|".join(size.kept)))


def _reached(size: Size, places: Mapping[str, Endpoint]) -> Text:
    """Return where a job's endpoints listen, and why no Prometheus reaches them."""
    place = places.get(size.job.name)
    if place is None:
        return Text(size.job.about, "dim")
    why = "; ".join(filter(None, (place.needs, place.closed and f"not reached: {place.closed}")))
    return Text(f"{place.where}{f' ({why})' if why else ''}", "dim")


def _sizes(cluster: Cluster, jobs: tuple[Size, ...], places: Mapping[str, Endpoint]) -> dict[str, Any]:
    settings, series = cluster.spec.monitoring, sizes.total(jobs)
    return {
        "cluster": cluster.name,
        "series": series,
        "max_series": settings.max_series,
        "memory_bytes": sizes.memory(series),
        "disk_bytes": sizes.disk(jobs, settings.retention),
        "retention_ms": settings.retention,
        "jobs": [_job(size, places.get(size.job.name)) for size in jobs],
    }


def _job(size: Size, place: Endpoint | None) -> dict[str, Any]:
    own = {"scheme": place.scheme, "port": place.port, "path": place.path, "closed": place.closed} if place else {}
    return {
        "job": size.job.name,
        "endpoints": size.targets,
        "series": size.series,
        "every_s": size.job.every_s,
        "labels": ["job", "instance", *size.job.labels],
        "keep": list(size.kept),
        **own,
    }


def show_alerts(cluster: Cluster, *, closed: bool, as_json: bool) -> None:
    """Print a rule file for Prometheus; as JSON each alert with its meaning and runbook."""
    _refuse_if_off(cluster)
    if not as_json:
        write_out(rules.text(cluster, closed=closed))
        return
    by_group = groups(cluster, closed=closed)
    alerts = [{"group": group, **_alert(alert, cluster)} for group, each in by_group.items() for alert in each]
    print_json({"cluster": cluster.name, "alerts": alerts})


def _alert(alert: Alert, cluster: Cluster) -> dict[str, Any]:
    return {
        "name": alert.name,
        "severity": alert.severity.value if alert.severity else "none",
        "for": alert.holds,
        "expr": alert.expr,
        "summary": alert.says,
        "means": alert.means,
        "runbook": alert.page,
        "first": alert.command(cluster.name),
    }


def show_receivers(cluster: Cluster, *, as_json: bool) -> None:
    """Print Alertmanager's configuration."""
    _refuse_if_off(cluster)
    if as_json:
        print_json(receivers.configuration(cluster))
    else:
        write_out(receivers.text(cluster))
    if not cluster.spec.monitoring.receivers:
        note("monitoring.receivers is empty, so these routes send alerts to nobody")


def show_dashboards(cluster: Cluster, output: Path | None) -> None:
    """Print all dashboards as one JSON document, or write a file for each."""
    _refuse_if_off(cluster)
    documents = {dashboard.uid: grafana(dashboard) for dashboard in DASHBOARDS}
    if output is None:
        print_json({"dashboards": list(documents.values())})
        return
    if output.exists() and not output.is_dir():
        raise typer.BadParameter(f"--output: {output} is not a folder")
    output.mkdir(parents=True, exist_ok=True)
    for uid, document in documents.items():
        text = json.dumps(document, indent=2, sort_keys=True) + "\n"
        write(output / f"{uid}.json", text, "a dashboard", bears(f'"uid": "{uid}"'))
        console.print(str(output / f"{uid}.json"))


def _refuse_if_off(cluster: Cluster) -> None:
    if not cluster.spec.monitoring.enabled:
        text = f"monitoring.enabled is false in the spec of {cluster.name}, so there is nothing to show; remove the key"
        raise RefusedError(text, code="monitoring-off")
