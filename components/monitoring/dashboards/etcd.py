"""Both etcds: quorum, disks, size."""

from __future__ import annotations

from components.monitoring.dashboards.model import Dashboard, chart, number

_NAME = "{{job}} {{instance}}"


def _p99(metric: str) -> str:
    return f"histogram_quantile(0.99, rate({metric}_bucket[5m]))"


ETCD = Dashboard(
    "menagerie-etcd",
    "etcd",
    "Members of etcd main and of etcd events.",
    (
        number("Members of main", 'sum(up{job="etcd-main"})'),
        number("Members of events", 'sum(up{job="etcd-events"})'),
        number("Members without a leader", "count(etcd_server_has_leader == 0) or vector(0)"),
        chart("Slowest 1 % of fsyncs", _p99("etcd_disk_wal_fsync_duration_seconds"), _NAME, unit="s",
              about="Above 10 ms writes become slow."),
        chart("Slowest 1 % of commits", _p99("etcd_disk_backend_commit_duration_seconds"), _NAME, unit="s",
              about="Above 25 ms the disk is too slow."),
        chart("Slowest 1 % of round trips between members", _p99("etcd_network_peer_round_trip_time_seconds"),
              "{{job}} {{instance}} to {{To}}", unit="s"),
        chart("Messages that did not reach a peer", "rate(etcd_network_peer_sent_failures_total[5m])",
              "{{job}} {{instance}} to {{To}}", unit="ops"),
        chart("Leader", "etcd_server_is_leader", _NAME),
        chart("Changes of the leader", "increase(etcd_server_leader_changes_seen_total[1h])", _NAME),
        chart("Database, share of the quota", "etcd_mvcc_db_total_size_in_bytes / etcd_server_quota_backend_bytes", _NAME,
              unit="percentunit", about="At 100 % every write fails."),
        chart("Database in use", "etcd_mvcc_db_total_size_in_use_in_bytes", _NAME, unit="bytes",
              about="Far below the size on disk: defragment."),
        chart("Writes that wait", "etcd_server_proposals_pending", _NAME),
        chart("Writes", "rate(etcd_server_proposals_committed_total[5m])", _NAME, unit="ops"),
        chart("Memory", 'process_resident_memory_bytes{job=~"etcd-main|etcd-events"}', _NAME, unit="bytes"),
        chart("Alarms", "etcd_debugging_server_alarms", "{{job}} {{alarm_type}}"),
    ),
)  # fmt: skip
