"""Alerts on Menagerie's own programs, and on monitoring itself."""

from __future__ import annotations

from collections.abc import Iterable

from cluster.monitoring import Severity
from components.monitoring.alert import Alert

DEAD_MANS_SWITCH = "DeadMansSwitch"
_STALE_S = 15 * 60
"""docs/how-to/controllers.md: a round that succeeded, at least this often."""
_PASS_S = 10 * 60
"""Forty intervals of the autoscaler's default, 15 s."""

ALERTS = (
    Alert(
        name="ControllerWithoutLeader",
        expr="max by (controller) (menagerie_controller_leader) == 0",
        holds="5m",
        severity=Severity.WARNING,
        says="No pod of {{ $labels.controller }} acts.",
        means="Nothing syncs people and teams, or hosts of teams. What exists stays as it is.",
        jobs=("controllers",),
        runbook="controller-stale",
        first="status CLUSTER controllers",
    ),
    Alert(
        name="ControllerStale",
        expr=(
            f"time() - menagerie_controller_last_success_timestamp_seconds > {_STALE_S}"
            " and on (instance) menagerie_controller_leader == 1"
        ),
        holds="5m",
        severity=Severity.WARNING,
        says="The last good round of {{ $labels.controller }} was {{ $value | humanizeDuration }} ago.",
        means="The directory or the API does not answer, or the directory has lost so many entries that a person must accept it.",
        jobs=("controllers",),
        runbook="controller-stale",
        first="status CLUSTER controllers",
    ),
    Alert(
        name="AutoscalerStale",
        expr=f"time() - menagerie_autoscaler_last_pass_timestamp_seconds > {_PASS_S}",
        holds="5m",
        severity=Severity.WARNING,
        says="The last good pass of the autoscaler was {{ $value | humanizeDuration }} ago.",
        means="No host is added for waiting pods, and no idle host is removed.",
        jobs=("autoscaler",),
        runbook="autoscaler-stuck",
        first="autoscaler plan CLUSTER",
    ),
    Alert(
        name="NoMachines",
        expr="menagerie_autoscaler_resting == 1",
        holds="1h",
        severity=Severity.WARNING,
        says="The cloud has given no machine for pool {{ $labels.pool }} for an hour.",
        means="No capacity, a quota, or a right. Pods are planned elsewhere where they can be; others wait.",
        jobs=("autoscaler",),
        runbook="autoscaler-stuck",
        first="autoscaler plan CLUSTER",
    ),
    Alert(
        name="TargetsDown",
        expr="count by (job) (up == 0) / count by (job) (up) > 0.1",
        holds="15m",
        severity=Severity.WARNING,
        says="{{ $value | humanizePercentage }} of the endpoints of {{ $labels.job }} do not answer.",
        means="Alerts and dashboards on this job see only a part. Hosts are down, or certificates or firewalls changed.",
        jobs=(),
        runbook="targets-down",
        first="status CLUSTER",
    ),
    Alert(
        name=DEAD_MANS_SWITCH,
        expr="vector(1)",
        holds="0m",
        severity=None,
        says="Alerts arrive. This alert fires always; what receives it must warn when it no longer does.",
        means="Proof that Prometheus evaluates rules and that Alertmanager delivers. It is no fault.",
        jobs=(),
        runbook="targets-down",
        first="status CLUSTER",
    ),
)


def missing(jobs: Iterable[str]) -> Alert:
    """Return the alert on jobs that have no endpoint at all, which TargetsDown can't see."""
    return Alert(
        name="JobMissing",
        expr=" or ".join(f'absent(up{{job="{job}"}})' for job in jobs),
        holds="15m",
        severity=Severity.WARNING,
        says="Prometheus has no endpoint of job {{ $labels.job }}.",
        means="Discovery or the scrape configuration lost the job, so its alerts can't fire.",
        jobs=(),
        runbook="targets-down",
        first="status CLUSTER",
    )


def too_many(max_series: int) -> Alert:
    """Return the alert on series that near the number that Prometheus is planned for."""
    return Alert(
        name="SeriesNearLimit",
        expr=f"sum(scrape_samples_post_metric_relabeling) > {round(0.9 * max_series)}",
        holds="15m",
        severity=Severity.WARNING,
        says="Endpoints serve {{ $value | humanize }} series.",
        means="More than 90 % of monitoring.max_series. Prometheus dies when its memory is full, and with it every alert.",
        jobs=(),
        runbook="too-many-series",
        first="show monitoring CLUSTER",
    )
