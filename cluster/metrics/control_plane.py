"""API servers, the scheduler and the controller manager."""

from __future__ import annotations

from cluster.metrics.model import Exporter, counter, counters, gauge, gauges, histogram

_SOURCE = "Kubernetes 1.36.4, test/instrumentation: documentation-list.yaml and stable-metrics-list.yaml"
_REQUEST = ("verb", "group", "version", "resource", "subresource", "scope", "component", "dry_run")
_REQUESTS = 1000
"""Combinations of a request's labels and its code, for each API server. An estimate: a lab test prints the real number."""
_TIMED = 500
"""The same without the code. An estimate, too."""
_LEVELS = 9
"""Priority levels: eight that Kubernetes has, and room for one of yours."""
_SCHEMAS = 14
"""Flow schemas: thirteen that Kubernetes has, and room for one of yours."""
_PROCESS = "process_resident_memory_bytes process_start_time_seconds go_goroutines"

API_SERVER = Exporter(
    "kube-apiserver",
    _SOURCE,
    (
        counter("apiserver_request_total", *_REQUEST, "code", times=_REQUESTS),
        histogram("apiserver_request_duration_seconds", *_REQUEST, buckets=23, times=_TIMED),
        gauge("apiserver_longrunning_requests", *_REQUEST[:-1], times=_TIMED),
        gauge("apiserver_current_inflight_requests", "request_kind", times=2),
        counter(
            "apiserver_flowcontrol_rejected_requests_total",
            "flow_schema",
            "priority_level",
            "reason",
            times=4 * _SCHEMAS,
        ),
        counter("apiserver_flowcontrol_dispatched_requests_total", "flow_schema", "priority_level", times=_SCHEMAS),
        gauge("apiserver_flowcontrol_current_inqueue_requests", "flow_schema", "priority_level", times=_SCHEMAS),
        gauge("apiserver_flowcontrol_current_executing_requests", "flow_schema", "priority_level", times=_SCHEMAS),
        gauge("apiserver_flowcontrol_current_executing_seats", "flow_schema", "priority_level", times=_SCHEMAS),
        gauge("apiserver_flowcontrol_nominal_limit_seats", "priority_level", times=_LEVELS),
        gauge(
            "apiserver_requested_deprecated_apis",
            "group",
            "version",
            "resource",
            "subresource",
            "removed_release",
            times=10,
        ),
        gauge("apiserver_storage_size_bytes", "storage_cluster_id", times=2),
        gauge("apiserver_resource_objects", "group", "resource", times=150),
        counter("rest_client_requests_total", "code", "method", "host", times=20),
        *gauges(_PROCESS),
        counter("process_cpu_seconds_total"),
    ),
)

SCHEDULER = Exporter(
    "kube-scheduler",
    _SOURCE,
    (
        gauge("scheduler_pending_pods", "queue", times=4),
        # Profiles are the default one and `pack`.
        counter("scheduler_schedule_attempts_total", "result", "profile", times=6),
        counter("scheduler_preemption_attempts_total"),
        histogram("scheduler_pod_scheduling_sli_duration_seconds", "attempts", buckets=20, times=16),
        histogram("scheduler_scheduling_attempt_duration_seconds", "result", "profile", buckets=15, times=6),
        counter("scheduler_queue_incoming_pods_total", "event", "queue", times=60),
        gauge("leader_election_master_status", "name"),
        counter("rest_client_requests_total", "code", "method", "host", times=20),
        *gauges(_PROCESS),
        counter("process_cpu_seconds_total"),
    ),
)

CONTROLLER_MANAGER = Exporter(
    "kube-controller-manager",
    _SOURCE,
    (
        *gauges("workqueue_depth workqueue_unfinished_work_seconds", "name", times=60),
        *counters("workqueue_adds_total workqueue_retries_total", "name", times=60),
        *gauges(
            "node_collector_unhealthy_nodes_in_zone node_collector_zone_size node_collector_zone_health",
            "zone",
            times=10,
        ),
        counter("node_collector_evictions_total", "zone", times=10),
        gauge("leader_election_master_status", "name"),
        counter("rest_client_requests_total", "code", "method", "host", times=20),
        *gauges(_PROCESS),
        counter("process_cpu_seconds_total"),
    ),
)

KONNECTIVITY_SERVER = Exporter(
    "konnectivity-server",
    "apiserver-network-proxy 0.34.0, pkg/server/metrics/metrics.go",
    (
        *gauges(
            """
            konnectivity_network_proxy_server_ready_backend_connections konnectivity_network_proxy_server_http_connections
            konnectivity_network_proxy_server_pending_backend_dials konnectivity_network_proxy_server_established_connections
            """
        ),
        *gauges(
            "konnectivity_network_proxy_server_grpc_connections konnectivity_network_proxy_server_full_receive_channels",
            "service_method",
            times=2,
        ),
        counter("konnectivity_network_proxy_server_dial_failure_count", "reason", times=8),
        histogram("konnectivity_network_proxy_server_dial_duration_seconds", buckets=9),
    ),
)

KONNECTIVITY_AGENT = Exporter(
    "konnectivity-agent",
    "apiserver-network-proxy 0.34.0, pkg/agent/metrics/metrics.go",
    (
        *gauges(
            """
            konnectivity_network_proxy_agent_open_server_connections konnectivity_network_proxy_agent_known_server_count
            konnectivity_network_proxy_agent_open_endpoint_connections
            """
        ),
        counter("konnectivity_network_proxy_agent_endpoint_dial_failure_total", "reason", times=2),
        histogram("konnectivity_network_proxy_agent_dial_duration_seconds", buckets=7),
    ),
)

COREDNS = Exporter(
    "coredns",
    "CoreDNS 1.14.6, plugin/metrics/vars, plugin/forward, plugin/pkg/proxy",
    (
        # Two zones (the cluster's and the root), types, codes and protocols that occur.
        counter("coredns_dns_requests_total", "server", "zone", "view", "proto", "family", "type", times=60),
        counter("coredns_dns_responses_total", "server", "zone", "view", "rcode", "plugin", times=20),
        histogram("coredns_dns_request_duration_seconds", "server", "zone", "view", buckets=16, times=2),
        counter("coredns_panics_total"),
        counter("coredns_forward_healthcheck_broken_total"),
        counter("coredns_forward_max_concurrent_rejects_total"),
        counter("coredns_proxy_healthcheck_failures_total", "proxy_name", "to", times=3),
        gauge("process_resident_memory_bytes"),
    ),
)
