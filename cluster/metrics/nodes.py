"""node_exporter: metrics of a host's kernel, and of files in its textfile folder."""

from __future__ import annotations

from cluster.metrics.model import Exporter, Per, counter, counters, gauge, gauges

COLLECTORS = (
    *("conntrack", "cpu", "diskstats", "filefd", "filesystem", "infiniband", "loadavg", "meminfo", "netclass"),
    *("netdev", "netstat", "pressure", "sockstat", "stat", "textfile", "time", "timex", "vmstat"),
)
"""Collectors that role node_metrics switches on: those of the metrics below."""
_UNITS = 3
"""Default of role node_metrics: containerd, flanneld, kubelet."""

_OF_HOST = (
    gauge("menagerie_unit_active", "unit", times=_UNITS),
    counter("menagerie_unit_restarts_total", "unit", times=_UNITS),
    *gauges(
        """
        menagerie_agent_tunnels menagerie_preflight_passed menagerie_preflight_timestamp_seconds
        menagerie_reboot_required menagerie_reader_stuck
        """
    ),
    # systemd and the exporter on each node, nvidia-smi and the kubelet on those with GPUs.
    gauge("menagerie_reader_failed", "reader", times=4),
)
_OF_GPUS = (
    gauge("menagerie_gpus", "by", per=Per.GPU_NODE, times=2),
    gauge("menagerie_gpu_info", "gpu", "uuid", "product", "driver", per=Per.GPU),
    *gauges(
        """
        menagerie_gpu_busy_ratio menagerie_gpu_memory_used_bytes menagerie_gpu_memory_bytes menagerie_gpu_power_watts
        menagerie_gpu_temperature_celsius menagerie_gpu_memory_temperature_celsius menagerie_gpu_clock_hertz
        menagerie_gpu_slowed menagerie_gpu_remapped_rows menagerie_gpu_remap_failed
        """,
        "gpu",
        per=Per.GPU,
    ),
    gauge("menagerie_gpu_pod", "gpu", "namespace", "pod", per=Per.GPU),
)

NODE_EXPORTER = Exporter(
    "node_exporter",
    "node_exporter 1.12.1, collector/fixtures/e2e-output.txt and collector/*.go; menagerie_*: roles neighbours, node_metrics",
    (
        counter("node_cpu_seconds_total", "cpu", "mode", per=Per.CPU, times=8),
        *counters(
            """
            node_pressure_cpu_waiting_seconds_total node_pressure_memory_waiting_seconds_total
            node_pressure_memory_stalled_seconds_total node_pressure_io_waiting_seconds_total
            node_pressure_io_stalled_seconds_total node_context_switches_total node_intr_total node_vmstat_oom_kill
            node_vmstat_pgmajfault node_netstat_Tcp_RetransSegs node_netstat_Tcp_OutSegs node_netstat_TcpExt_ListenDrops
            node_netstat_TcpExt_ListenOverflows node_netstat_Udp_RcvbufErrors
            """
        ),
        *gauges(
            """
            node_load1 node_load5 node_load15 node_boot_time_seconds node_time_seconds node_procs_blocked
            node_procs_running node_memory_MemTotal_bytes node_memory_MemAvailable_bytes node_memory_MemFree_bytes
            node_memory_Cached_bytes node_memory_Slab_bytes node_nf_conntrack_entries node_nf_conntrack_entries_limit
            node_filefd_allocated node_filefd_maximum node_sockstat_TCP_inuse node_sockstat_TCP_tw
            node_timex_offset_seconds node_timex_sync_status node_timex_maxerror_seconds node_textfile_scrape_error
            """
        ),
        gauge("node_scrape_collector_success", "collector", times=len(COLLECTORS)),
        # One for each file of the collector `textfile`.
        gauge("node_textfile_mtime_seconds", "file", times=3),
        *counters(
            """
            node_disk_read_bytes_total node_disk_written_bytes_total node_disk_reads_completed_total
            node_disk_writes_completed_total node_disk_read_time_seconds_total node_disk_write_time_seconds_total
            node_disk_io_time_seconds_total
            """,
            "device",
            per=Per.DISK,
        ),
        *gauges(
            """
            node_filesystem_size_bytes node_filesystem_avail_bytes node_filesystem_files node_filesystem_files_free
            node_filesystem_readonly
            """,
            *("device", "mountpoint", "fstype", "device_error"),
            per=Per.FILESYSTEM,
        ),
        *counters(
            """
            node_network_receive_bytes_total node_network_transmit_bytes_total node_network_receive_packets_total
            node_network_transmit_packets_total node_network_receive_errs_total node_network_transmit_errs_total
            node_network_receive_drop_total node_network_transmit_drop_total node_network_carrier_changes_total
            """,
            "device",
            per=Per.INTERFACE,
        ),
        *gauges("node_network_up node_network_speed_bytes node_network_carrier", "device", per=Per.INTERFACE),
        *counters(
            """
            node_infiniband_port_data_received_bytes_total node_infiniband_port_data_transmitted_bytes_total
            node_infiniband_port_packets_received_total node_infiniband_port_packets_transmitted_total
            node_infiniband_port_errors_received_total node_infiniband_port_discards_transmitted_total
            node_infiniband_port_transmit_wait_total node_infiniband_link_downed_total
            node_infiniband_link_error_recovery_total
            """,
            *("device", "port"),
            per=Per.RDMA_PORT,
        ),
        *gauges(
            "node_infiniband_state_id node_infiniband_physical_state_id node_infiniband_rate_bytes_per_second",
            *("device", "port"),
            per=Per.RDMA_PORT,
        ),
        # IPv4 and IPv6.
        counter("menagerie_neighbours_overflows_total", "family", times=2),
        *gauges("menagerie_neighbours_entries menagerie_neighbours_limit", "family", times=2),
        *_OF_HOST,
        *_OF_GPUS,
    ),
)
