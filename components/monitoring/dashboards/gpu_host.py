"""One GPU host."""

from __future__ import annotations

from components.monitoring.dashboards.model import Dashboard, Panel, Query, Variable, chart, number

_NODE = 'node="$node"'
_GPU = "GPU {{gpu}}"

GPU_HOST = Dashboard(
    "menagerie-gpu-host",
    "GPU host",
    "One host, its GPUs and their pods. Choose the node at the top.",
    (
        number("Ready", f'kube_node_status_condition{{condition="Ready", status="true", {_NODE}}}'),
        number("Passes its checks", f'kube_node_status_condition{{condition="PreflightPassed", status="true", {_NODE}}}'),
        number("GPUs that jobs can use", f'kube_node_status_allocatable{{resource="nvidia_com_gpu", {_NODE}}}'),
        chart("How busy GPUs are", f"DCGM_FI_DEV_GPU_UTIL{{{_NODE}}} / 100", "GPU {{gpu}} {{namespace}}/{{pod}}",
              unit="percentunit"),
        chart("Memory of GPUs in use", f"DCGM_FI_DEV_FB_USED{{{_NODE}}} * 1048576", _GPU, unit="bytes"),
        chart("Temperature", f"DCGM_FI_DEV_GPU_TEMP{{{_NODE}}}", _GPU, unit="celsius"),
        chart("Temperature of memory", f"DCGM_FI_DEV_MEMORY_TEMP{{{_NODE}}}", _GPU, unit="celsius"),
        chart("Power", f"DCGM_FI_DEV_POWER_USAGE{{{_NODE}}}", _GPU, unit="watt"),
        chart("Clock", f"DCGM_FI_DEV_SM_CLOCK{{{_NODE}}} * 1000000", _GPU, unit="hertz",
              about="Lower under load: heat, or a power brake."),
        chart("Last Xid", f"DCGM_FI_DEV_XID_ERRORS{{{_NODE}}}", _GPU, about="docs/how-to/preflight.md says what each means."),
        Panel(
            "Memory rows remapped",
            (
                Query(f"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS{{{_NODE}}}", "GPU {{gpu}} uncorrectable"),
                Query(f"DCGM_FI_DEV_ROW_REMAP_FAILURE{{{_NODE}}}", "GPU {{gpu}} failed"),
            ),
        ),
        Panel(
            "RDMA",
            (
                Query(f"rate(node_infiniband_port_data_received_bytes_total{{{_NODE}}}[5m])", "{{device}} received"),
                Query(f"rate(node_infiniband_port_data_transmitted_bytes_total{{{_NODE}}}[5m])", "{{device}} sent"),
            ),
            unit="Bps",
        ),
        chart("CPUs in use", f"rate(node_cpu_usage_seconds_total{{{_NODE}}}[5m])"),
        chart("Memory in use", f"node_memory_MemTotal_bytes{{{_NODE}}} - node_memory_MemAvailable_bytes{{{_NODE}}}",
              unit="bytes"),
        chart("Waiting for disks", f"rate(node_pressure_io_waiting_seconds_total{{{_NODE}}}[5m])", unit="percentunit"),
        chart("Disks are busy", f"rate(node_disk_io_time_seconds_total{{{_NODE}}}[5m])", "{{device}}", unit="percentunit"),
        chart("File systems, share left",
              f"node_filesystem_avail_bytes{{{_NODE}}} / node_filesystem_size_bytes{{{_NODE}}}", "{{mountpoint}}",
              unit="percentunit"),
        chart("Pods", f"kubelet_running_pods{{{_NODE}}}"),
    ),
    variables=(Variable("node", "kubelet_running_pods", "node"),),
)  # fmt: skip
