"""All clusters on one page.

The label `cluster` comes from `external_labels` of each cluster's Prometheus, so a common store has it.
"""

from __future__ import annotations

from components.monitoring.dashboards.model import Dashboard, chart

_READY = 'kube_node_status_condition{condition="Ready", status="true"}'
_GPUS = 'kube_node_status_allocatable{resource="nvidia_com_gpu"}'

FLEET = Dashboard(
    "menagerie-fleet",
    "Fleet",
    "Every cluster in one place. One Prometheus sees its own cluster; a common store of samples sees all.",
    (
        chart("Nodes that are Ready", f"sum by (cluster) ({_READY})", "{{cluster}}"),
        chart("Nodes that are not Ready", f"count by (cluster) ({_READY} == 0)", "{{cluster}}"),
        chart("GPUs that jobs can use", f"sum by (cluster) ({_GPUS})", "{{cluster}}"),
        chart("GPUs in use", "sum by (cluster) (menagerie:gpus_in_use:count)", "{{cluster}}"),
        chart("Power of GPUs in use", "sum by (cluster) (menagerie:gpu_power_watts:sum)", "{{cluster}}", unit="watt"),
        chart("API servers that answer", 'sum by (cluster) (up{job="kube-apiserver"})', "{{cluster}}"),
        chart("Members that answer", 'sum by (cluster, job) (up{job=~"etcd-main|etcd-events"})', "{{cluster}} {{job}}"),
        chart("CPUs in use", "sum by (cluster) (menagerie:pod_cpus:rate5m)", "{{cluster}}"),
        chart("Memory in use", "sum by (cluster) (menagerie:pod_memory_bytes:sum)", "{{cluster}}", unit="bytes"),
        chart("Pods that wait", "sum by (cluster, queue) (scheduler_pending_pods)", "{{cluster}} {{queue}}"),
        chart("Cost of machines in the region, per hour", "sum by (cluster) (menagerie_autoscaler_pool_dollars_per_hour)",
              "{{cluster}}", unit="currencyUSD"),
        chart("Series", "sum by (cluster) (scrape_samples_post_metric_relabeling)", "{{cluster}}"),
    ),
)  # fmt: skip
