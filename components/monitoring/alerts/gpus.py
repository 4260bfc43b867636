"""Alerts on GPUs and the RDMA fabric. What a host finds out about itself is PreflightFailed."""

from __future__ import annotations

from cluster.monitoring import Severity
from components.monitoring.alert import Alert

_REPAIR = "repair CLUSTER --dry-run"

ALERTS = (
    Alert(
        name="GpuLost",
        expr=(
            'kube_node_status_allocatable{resource="nvidia_com_gpu"}'
            ' < kube_node_status_capacity{resource="nvidia_com_gpu"}'
        ),
        holds="10m",
        severity=Severity.WARNING,
        says="Node {{ $labels.node }} can use {{ $value }} GPUs, fewer than it has.",
        means="The device plugin has taken a GPU out of use after an Xid. Jobs that need the whole host do not start there.",
        jobs=("kube-state-metrics",),
        runbook="gpu-fallen-off",
        first=_REPAIR,
        when="gpu",
    ),
    Alert(
        name="GpusUnreadable",
        expr='menagerie_reader_failed{reader="nvidia-smi"} == 1 or menagerie_reader_stuck == 1',
        holds="10m",
        severity=Severity.WARNING,
        says="GPUs of node {{ $labels.node }} do not answer.",
        means="nvidia-smi fails or hangs: the driver or a GPU is broken. Jobs there may hang as well.",
        jobs=("node",),
        runbook="gpu-fallen-off",
        first=_REPAIR,
        when="gpu",
    ),
    Alert(
        name="GpuMemoryWornOut",
        expr="menagerie_gpu_remap_failed == 1",
        holds="5m",
        severity=Severity.WARNING,
        says="GPU {{ $labels.gpu }} of {{ $labels.node }} could not remap a memory row.",
        means="The GPU has no spare rows left and must be replaced (NVIDIA, GPU Memory Error Management).",
        jobs=("node",),
        runbook="preflight-failed",
        first=_REPAIR,
        when="gpu",
    ),
    Alert(
        name="RdmaLinkDrops",
        expr="increase(node_infiniband_link_downed_total[15m]) > 0",
        holds="1m",
        severity=Severity.WARNING,
        says="The link of {{ $labels.device }} of {{ $labels.node }} went down.",
        means="A cable, a transceiver or a port of a switch. A collective operation waits for the slowest link, or fails.",
        jobs=("node",),
        runbook="training-job-slow",
        first=_REPAIR,
    ),
)
