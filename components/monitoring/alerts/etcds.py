"""Alerts on etcd main and etcd events. The label `job` says which."""

from __future__ import annotations

from cluster.monitoring import Severity
from components.monitoring.alert import Alert

_JOBS = ("etcd-main", "etcd-events")
_FIRST = "status CLUSTER etcd"

ALERTS = (
    Alert(
        name="EtcdNoQuorum",
        expr=(
            'max(etcd_server_has_leader{job="etcd-main"}) == 0'
            ' or sum(up{job="etcd-main"}) * 2 <= count(up{job="etcd-main"})'
        ),
        holds="1m",
        severity=Severity.CRITICAL,
        says="etcd main has no leader, or half of its members do not answer.",
        means="Without a majority of members it takes no writes, and the API does not work. Pods that run go on.",
        jobs=("etcd-main",),
        runbook="etcd-quorum-lost",
        first=_FIRST,
    ),
    Alert(
        name="EtcdEventsDown",
        expr=(
            'max(etcd_server_has_leader{job="etcd-events"}) == 0'
            ' or sum(up{job="etcd-events"}) * 2 <= count(up{job="etcd-events"})'
            ' or max(etcd_debugging_server_alarms{job="etcd-events"}) > 0'
        ),
        holds="5m",
        severity=Severity.WARNING,
        says="etcd events takes no writes.",
        means="Events are lost, and nothing else: the API serves. An API server that restarts meanwhile does not come back.",
        jobs=("etcd-events",),
        runbook="etcd-events-down",
        first=_FIRST,
    ),
    Alert(
        name="EtcdMemberDown",
        expr='up{job=~"etcd-main|etcd-events"} == 0',
        holds="5m",
        severity=Severity.WARNING,
        says="Member {{ $labels.instance }} of {{ $labels.job }} does not answer.",
        means="The others serve. With three members, one more loss stops this etcd.",
        jobs=_JOBS,
        runbook="etcd-member-down",
        first=_FIRST,
    ),
    Alert(
        name="EtcdAlarm",
        expr='etcd_debugging_server_alarms{job="etcd-main"} > 0',
        holds="1m",
        severity=Severity.CRITICAL,
        says="etcd main has the alarm {{ $labels.alarm_type }}.",
        means="NOSPACE: it is at its quota and takes no writes. CORRUPT: a member's data differs from that of its peers.",
        jobs=("etcd-main",),
        runbook="etcd",
        first=_FIRST,
    ),
    Alert(
        name="EtcdNearQuota",
        # From the same share on, `status` says `not ok`.
        expr="etcd_mvcc_db_total_size_in_bytes / etcd_server_quota_backend_bytes > 0.8",
        holds="10m",
        severity=Severity.WARNING,
        says="{{ $labels.instance }} of {{ $labels.job }} has used {{ $value | humanizePercentage }} of its quota.",
        means="At the quota every write fails. Somebody creates more objects than before, or compaction does not run.",
        jobs=_JOBS,
        runbook="etcd-no-space",
        first=_FIRST,
    ),
    Alert(
        name="EtcdSlowDisk",
        # etcd's own recommendation (Documentation, "Hardware recommendations" and "FAQ").
        expr="histogram_quantile(0.99, rate(etcd_disk_wal_fsync_duration_seconds_bucket[5m])) > 0.01",
        holds="10m",
        severity=Severity.WARNING,
        says="1 % of fsyncs of {{ $labels.instance }} ({{ $labels.job }}) take longer than {{ $value | humanizeDuration }}.",
        means="Every write waits for the disks of a majority. A slow disk can also cost the leader its leadership.",
        jobs=_JOBS,
        runbook="etcd-slow-disk",
        first=_FIRST,
    ),
    Alert(
        name="EtcdLeaderChanges",
        expr="increase(etcd_server_leader_changes_seen_total[1h]) > 3",
        holds="1m",
        severity=Severity.WARNING,
        says="{{ $labels.job }} has changed its leader {{ $value | humanize }} times within an hour.",
        means="Writes wait during each election. Disks are slow, or members lose each other.",
        jobs=_JOBS,
        runbook="etcd-slow-disk",
        first=_FIRST,
    ),
    Alert(
        name="EtcdMemberCutOff",
        # While a member is down, its peers fail to reach it, too.
        expr=(
            "rate(etcd_network_peer_sent_failures_total[5m]) > 0"
            ' and on (job) (min by (job) (up{job=~"etcd-main|etcd-events"}) == 1)'
        ),
        holds="5m",
        severity=Severity.WARNING,
        says="{{ $labels.instance }} of {{ $labels.job }} does not reach a peer that runs.",
        means="The network between members is cut or loses packets.",
        jobs=_JOBS,
        runbook="etcd-member-cut-off",
        first=_FIRST,
    ),
)
