"""Recording rules: sums over GPUs and pods that dashboards would otherwise compute from each series at each look."""

from __future__ import annotations

from typing import NamedTuple


class Recording(NamedTuple):
    """A metric that Prometheus computes. `cluster.metrics.own` counts its series."""

    name: str
    expr: str
    says: str


# A GPU that several pods share counts once for each.
_OF_POD = "menagerie_gpu_pod * on (node, gpu) group_left ()"
RECORDINGS = (
    Recording(
        "menagerie:gpus_in_use:count",
        "count by (namespace) (menagerie_gpu_pod)",
        "GPUs that pods of a namespace have.",
    ),
    Recording(
        "menagerie:gpu_utilisation:avg",
        f"avg by (namespace) ({_OF_POD} menagerie_gpu_busy_ratio)",
        "How busy the GPUs are that pods of a namespace have, 0 to 1.",
    ),
    Recording(
        "menagerie:gpu_power_watts:sum",
        f"sum by (namespace) ({_OF_POD} menagerie_gpu_power_watts)",
        "Power of the GPUs that pods of a namespace have. The host's own power is not in it.",
    ),
    Recording(
        "menagerie:pod_cpus:rate5m",
        "sum by (namespace) (rate(pod_cpu_usage_seconds_total[5m]))",
        "CPUs that pods of a namespace use.",
    ),
    Recording(
        "menagerie:pod_memory_bytes:sum",
        "sum by (namespace) (pod_memory_working_set_bytes)",
        "Memory that pods of a namespace use.",
    ),
)
