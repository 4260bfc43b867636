"""dcgm-exporter: metrics of NVIDIA's GPUs, with the pod that has each."""

from __future__ import annotations

from cluster.metrics.model import Exporter, Per, counters, gauges

# The exporter adds the last three where a pod has the GPU (DCGM_EXPORTER_KUBERNETES).
_LABELS = ("gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname", "container", "namespace", "pod")

DCGM_EXPORTER = Exporter(
    "dcgm-exporter",
    "dcgm-exporter, etc/default-counters.csv and internal/pkg/rendermetrics (commits 00d6d344 and 1f7abdb7)",
    (
        *gauges(
            """
            DCGM_FI_DEV_SM_CLOCK DCGM_FI_DEV_MEM_CLOCK DCGM_FI_DEV_MEMORY_TEMP DCGM_FI_DEV_GPU_TEMP DCGM_FI_DEV_POWER_USAGE
            DCGM_FI_DEV_GPU_UTIL DCGM_FI_DEV_MEM_COPY_UTIL DCGM_FI_DEV_ENC_UTIL DCGM_FI_DEV_DEC_UTIL
            DCGM_FI_DEV_XID_ERRORS DCGM_FI_DEV_FB_FREE DCGM_FI_DEV_FB_USED DCGM_FI_DEV_VGPU_LICENSE_STATUS
            DCGM_FI_DEV_ROW_REMAP_FAILURE
            """,
            *_LABELS,
            per=Per.GPU,
        ),
        *counters(
            """
            DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION DCGM_FI_DEV_PCIE_TX_THROUGHPUT DCGM_FI_DEV_PCIE_RX_THROUGHPUT
            DCGM_FI_DEV_PCIE_REPLAY_COUNTER DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS
            DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS
            """,
            *_LABELS,
            per=Per.GPU,
        ),
    ),
)
