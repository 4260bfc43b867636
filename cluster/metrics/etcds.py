"""etcd: metrics of a member."""

from __future__ import annotations

from cluster.metrics.model import Exporter, counter, counters, gauge, gauges, histogram

_PEERS = 6
"""Other members of the largest etcd that `check` accepts (ETC-002)."""

ETCD = Exporter(
    "etcd",
    "etcd 3.6.14, server/etcdserver, server/storage: metrics.go",
    (
        *gauges(
            """
            etcd_server_has_leader etcd_server_is_leader etcd_server_is_learner etcd_server_proposals_pending
            etcd_server_proposals_committed_total etcd_server_proposals_applied_total etcd_server_quota_backend_bytes
            etcd_mvcc_db_total_size_in_bytes etcd_mvcc_db_total_size_in_use_in_bytes etcd_mvcc_db_open_read_transactions
            etcd_debugging_mvcc_keys_total etcd_debugging_mvcc_watcher_total etcd_debugging_mvcc_slow_watcher_total
            etcd_disk_defrag_inflight process_resident_memory_bytes process_start_time_seconds
            """
        ),
        *counters(
            """
            etcd_server_leader_changes_seen_total etcd_server_heartbeat_send_failures_total
            etcd_server_proposals_failed_total etcd_server_slow_apply_total etcd_server_slow_read_indexes_total
            etcd_server_read_indexes_failed_total etcd_mvcc_put_total etcd_mvcc_delete_total etcd_mvcc_txn_total
            etcd_mvcc_range_total etcd_network_client_grpc_sent_bytes_total etcd_network_client_grpc_received_bytes_total
            process_cpu_seconds_total
            """
        ),
        gauge("etcd_server_version", "server_version"),
        # A series for each alarm that was set since the member started: NOSPACE and CORRUPT.
        gauge("etcd_debugging_server_alarms", "server_id", "alarm_type", times=2 * (_PEERS + 1)),
        *counters(
            """
            etcd_network_peer_sent_bytes_total etcd_network_peer_sent_failures_total
            """,
            "To",
            times=_PEERS,
        ),
        *counters(
            """
            etcd_network_peer_received_bytes_total etcd_network_peer_received_failures_total
            """,
            "From",
            times=_PEERS,
        ),
        *gauges("etcd_network_active_peers", "Local", "Remote", times=_PEERS),
        counter("etcd_network_disconnected_peers_total", "Local", "Remote", times=_PEERS),
        histogram("etcd_network_peer_round_trip_time_seconds", "To", buckets=16, times=_PEERS),
        histogram("etcd_disk_wal_fsync_duration_seconds", buckets=14),
        histogram("etcd_disk_backend_commit_duration_seconds", buckets=14),
    ),
)
