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
        number("Since its last checks", f"time() - menagerie_preflight_timestamp_seconds{{{_NODE}}}", unit="s"),
        number("Asks for a reboot", f"menagerie_reboot_required{{{_NODE}}}"),
        number("GPUs that the driver has", f'menagerie_gpus{{by="driver", {_NODE}}}'),
        number("GPUs that jobs can use", f'kube_node_status_allocatable{{resource="nvidia_com_gpu", {_NODE}}}'),
        chart("How busy GPUs are", f"menagerie_gpu_busy_ratio{{{_NODE}}}", _GPU, unit="percentunit"),
        chart("Pods that have GPUs", f"menagerie_gpu_pod{{{_NODE}}}", "GPU {{gpu}} {{namespace}}/{{pod}}"),
        chart("Memory of GPUs in use", f"menagerie_gpu_memory_used_bytes{{{_NODE}}}", _GPU, unit="bytes"),
        chart("Temperature", f"menagerie_gpu_temperature_celsius{{{_NODE}}}", _GPU, unit="celsius"),
        chart("Temperature of memory", f"menagerie_gpu_memory_temperature_celsius{{{_NODE}}}", _GPU, unit="celsius"),
        chart("Power", f"menagerie_gpu_power_watts{{{_NODE}}}", _GPU, unit="watt"),
        chart("Clock", f"menagerie_gpu_clock_hertz{{{_NODE}}}", _GPU, unit="hertz"),
        chart("Slowed by heat or a power brake", f"menagerie_gpu_slowed{{{_NODE}}}", _GPU),
        Panel(
            "Memory rows remapped",
            (
                Query(f"menagerie_gpu_remapped_rows{{{_NODE}}}", "GPU {{gpu}} uncorrectable"),
                Query(f"menagerie_gpu_remap_failed{{{_NODE}}}", "GPU {{gpu}} failed"),
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
