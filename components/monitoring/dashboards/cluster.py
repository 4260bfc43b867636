"""One cluster: the API, the scheduler, nodes, add-ons, and Menagerie's own programs."""

from __future__ import annotations

from components.monitoring.dashboards.model import Dashboard, Panel, Query, chart, number

_READY = 'kube_node_status_condition{condition="Ready", status="true"}'
_LATENCY = (
    "histogram_quantile(0.99, sum by (le, verb) (rate(apiserver_request_duration_seconds_bucket"
    '{verb=~"POST|PUT|PATCH|DELETE|GET"}[5m])))'
)
_SCHEDULED = "histogram_quantile(0.99, sum by (le) (rate(scheduler_pod_scheduling_sli_duration_seconds_bucket[5m])))"

CLUSTER = Dashboard(
    "menagerie-cluster",
    "Cluster",
    "Start here in an alarm. From left to right: can it be changed, does it place pods, are its nodes there.",
    (
        number("API servers", 'sum(up{job="kube-apiserver"})'),
        number("Nodes Ready", f"sum({_READY})"),
        number("Nodes not Ready", f"count({_READY} == 0) or vector(0)"),
        number("Nodes cordoned", "sum(kube_node_spec_unschedulable)"),
        number("Pods that run", "sum(kubelet_running_pods)"),
        number("Pods that find no place", 'sum(scheduler_pending_pods{queue="unschedulable"})'),
        chart("Requests to the API, by code", "sum by (code) (rate(apiserver_request_total[5m]))", "{{code}}", unit="reqps"),
        chart("Slowest 1 % of requests", _LATENCY, "{{verb}}", unit="s"),
        chart("Requests that run, by priority level",
              "sum by (priority_level) (apiserver_flowcontrol_current_executing_seats)", "{{priority_level}}"),
        chart("Requests that wait, by priority level",
              "sum by (priority_level) (apiserver_flowcontrol_current_inqueue_requests)", "{{priority_level}}"),
        chart("Requests rejected, by priority level",
              "sum by (priority_level) (rate(apiserver_flowcontrol_rejected_requests_total[5m]))", "{{priority_level}}",
              unit="reqps"),
        chart("Pods that wait, by queue", "sum by (queue) (scheduler_pending_pods)", "{{queue}}"),
        chart("Pods placed", "sum by (result) (rate(scheduler_schedule_attempts_total[5m]))", "{{result}}", unit="ops"),
        chart("Slowest 1 % of placements", _SCHEDULED, unit="s"),
        chart("Queues of controllers", "topk(10, sum by (name) (workqueue_depth))", "{{name}}"),
        Panel(
            "Tunnels to nodes",
            (
                Query("konnectivity_network_proxy_server_ready_backend_connections", "{{instance}}"),
                Query("sum by (reason) (rate(konnectivity_network_proxy_server_dial_failure_count[5m]))", "fails: {{reason}}"),
            ),
            about="Each API server has a tunnel from every node.",
        ),
        chart("Units of nodes that do not run", "count by (unit) (menagerie_unit_active == 0)", "{{unit}}"),
        chart("Nodes that ask for a reboot", "count(menagerie_reboot_required == 1)"),
        chart("DNS answers, by code", "sum by (rcode) (rate(coredns_dns_responses_total[5m]))", "{{rcode}}", unit="reqps"),
        chart("Add-ons that lack pods", 'kube_daemonset_status_number_unavailable{namespace="kube-system"} > 0',
              "{{daemonset}}"),
        chart("Controllers' rounds", "sum by (controller, end) (rate(menagerie_controller_rounds_total[15m]))",
              "{{controller}} {{end}}", unit="ops"),
        chart("Autoscaler: pods that wait, by fate", "menagerie_autoscaler_pods", "{{fate}}"),
        chart("Autoscaler: machines", "sum by (pool, state) (menagerie_autoscaler_machines)", "{{pool}} {{state}}"),
        chart("Endpoints that do not answer, by job", "count by (job) (up == 0)", "{{job}}"),
        chart("Series, by job", "sum by (job) (scrape_samples_post_metric_relabeling)", "{{job}}"),
    ),
)  # fmt: skip
