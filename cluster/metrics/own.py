"""Menagerie's own programs, Ceph, and what Prometheus itself adds. Tests compare our own with the programs."""

from __future__ import annotations

from cluster.metrics.model import Exporter, Job, Per, counter, gauge, gauges

CONTROLLER = Exporter(
    "menagerie controllers",
    "controllers/program/loop.py",
    (
        *gauges(
            """
            menagerie_controller_leader menagerie_controller_undecided
            menagerie_controller_last_success_timestamp_seconds menagerie_controller_round_seconds
            """
        ),
        gauge("menagerie_controller_size", "of", times=8),
        counter("menagerie_controller_rounds_total", "end", times=3),
        counter("menagerie_controller_changes_total"),
        counter("menagerie_controller_failures_total"),
    ),
)

AUTOSCALER = Exporter(
    "menagerie autoscaler",
    "controllers/autoscaler/metrics.py",
    (
        gauge("menagerie_autoscaler_pods", "fate", times=8),
        gauge("menagerie_autoscaler_machines", "pool", "state", per=Per.POOL, times=4),
        *gauges(
            """
            menagerie_autoscaler_idle_hosts menagerie_autoscaler_orders menagerie_autoscaler_resting
            menagerie_autoscaler_pool_dollars_per_hour
            """,
            "pool",
            per=Per.POOL,
        ),
        *gauges(
            """
            menagerie_autoscaler_braked_hosts menagerie_autoscaler_planned_dollars_per_hour
            menagerie_autoscaler_last_pass_timestamp_seconds
            """
        ),
        gauge("menagerie_autoscaler_pass_seconds", "part", times=3),
        counter("menagerie_autoscaler_passes_total", "end", times=3),
        counter("menagerie_autoscaler_acts_total", "act", "pool", "failed", per=Per.POOL, times=8),
    ),
)

CEPH = Exporter(
    "Ceph's manager",
    "Ceph, documentation of the module prometheus, and src/pybind/mgr/prometheus/module.py (commit 0129f80d, older)",
    (
        gauge("ceph_health_status"),
        gauge("ceph_health_detail", "name", "severity", times=40),
        gauge("ceph_osd_up", "ceph_daemon", per=Per.CEPH_DISK),
        *gauges("ceph_pool_stored ceph_pool_quota_bytes", "pool_id", times=50),
        gauge("ceph_pool_metadata", "pool_id", "name", "type", "description", "compression_mode", times=50),
        *gauges("ceph_cluster_total_bytes ceph_cluster_total_used_bytes"),
    ),
)

SCRAPES = Exporter(
    "the scrape itself",
    "Prometheus, Jobs and instances: automatically generated labels and time series",
    (
        *gauges(
            """
            up scrape_duration_seconds scrape_samples_scraped scrape_samples_post_metric_relabeling scrape_series_added
            """
        ),
    ),
)
"""Series of every endpoint of every job. No keep-list drops them."""

RECORDED = Exporter(
    "recording rules",
    "components/monitoring/recording.py",
    gauges(
        """
        menagerie:gpus_in_use:count menagerie:gpu_utilisation:avg menagerie:gpu_power_watts:sum menagerie:pod_cpus:rate5m
        menagerie:pod_memory_bytes:sum
        """,
        "namespace",
        per=Per.NAMESPACE,
    ),
)
RULES = Job("rules", RECORDED, Per.CLUSTER, 60, "recording rules, which have no endpoint")
"""No scrape job: Prometheus computes its series. All of them are kept."""
