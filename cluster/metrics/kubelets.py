"""The kubelet's three endpoints on each node: its own metrics, those of resources, and cAdvisor's."""

from __future__ import annotations

from cluster.metrics.model import Exporter, Per, counter, counters, gauge, gauges, histogram

_SOURCE = "Kubernetes 1.36.4, test/instrumentation: documentation-list.yaml and stable-metrics-list.yaml"
_VOLUME = ("namespace", "persistentvolumeclaim")
_OF_CONTAINER = ("container", "id", "image", "name", "namespace", "pod")

KUBELET = Exporter(
    "kubelet",
    _SOURCE,
    (
        gauge("kubelet_running_pods"),
        *gauges("kubelet_desired_pods kubelet_active_pods", "static", times=2),
        gauge("kubelet_running_containers", "container_state", times=3),
        gauge("kubelet_node_name", "node"),
        gauge("kubelet_certificate_manager_client_ttl_seconds"),
        *counters("kubelet_certificate_manager_client_expiration_renew_errors kubelet_started_pods_errors_total"),
        counter("kubelet_evictions", "eviction_signal", times=6),
        counter("kubelet_runtime_operations_total", "operation_type", times=25),
        counter("kubelet_runtime_operations_errors_total", "operation_type", times=25),
        histogram("kubelet_pleg_relist_duration_seconds", buckets=11),
        histogram("kubelet_pod_start_sli_duration_seconds", buckets=25),
        histogram(
            "storage_operation_duration_seconds",
            *("migrated", "operation_name", "status", "volume_plugin"),
            buckets=13,
            times=20,
        ),
        *gauges(
            "kubelet_volume_stats_capacity_bytes kubelet_volume_stats_available_bytes kubelet_volume_stats_used_bytes",
            *_VOLUME,
            per=Per.POD,
        ),
        counter("rest_client_requests_total", "code", "method", "host", times=15),
        *gauges("process_resident_memory_bytes process_start_time_seconds"),
        counter("process_cpu_seconds_total"),
    ),
)

RESOURCES = Exporter(
    "kubelet /metrics/resource",
    _SOURCE,
    (
        counter("node_cpu_usage_seconds_total"),
        *gauges("node_memory_working_set_bytes resource_scrape_error"),
        counter("pod_cpu_usage_seconds_total", "namespace", "pod", per=Per.POD),
        gauge("pod_memory_working_set_bytes", "namespace", "pod", per=Per.POD),
        counter("container_cpu_usage_seconds_total", "container", "namespace", "pod", per=Per.CONTAINER),
        *gauges(
            "container_memory_working_set_bytes container_start_time_seconds",
            *("container", "namespace", "pod"),
            per=Per.CONTAINER,
        ),
    ),
)

CADVISOR = Exporter(
    "kubelet /metrics/cadvisor",
    "cAdvisor 0.56.2, metrics/prometheus.go",
    (
        *counters(
            """
            container_cpu_cfs_periods_total container_cpu_cfs_throttled_periods_total
            container_cpu_cfs_throttled_seconds_total container_oom_events_total
            """,
            *_OF_CONTAINER,
            per=Per.CONTAINER,
        ),
        *counters(
            "container_fs_reads_bytes_total container_fs_writes_bytes_total",
            *(*_OF_CONTAINER, "device"),
            per=Per.CONTAINER,
        ),
        *gauges(
            "container_memory_rss container_memory_usage_bytes container_spec_memory_limit_bytes",
            *_OF_CONTAINER,
            per=Per.CONTAINER,
        ),
        *counters(
            "container_network_receive_bytes_total container_network_transmit_bytes_total",
            *("interface", "container", "id", "image", "name", "namespace", "pod"),
            per=Per.POD,
        ),
    ),
)
