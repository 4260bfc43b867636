"""Metrics that recording rules compute, which Prometheus holds like any other. `components.monitoring.recording` has the rules."""

from __future__ import annotations

from cluster.metrics.model import Exporter, Job, Per, gauges

RECORDED = Exporter(
    "recording rules",
    "components/monitoring/recording.py",
    gauges(
        """
        menagerie:gpus_in_use:count menagerie:gpu_utilisation:avg menagerie:gpu_power_watts:sum menagerie:pod_cpus:rate5m
        menagerie:pod_memory_bytes:sum
        """,
        "namespace",
        per=Per.NAMESPACE,
    ),
)
RULES = Job("rules", RECORDED, Per.CLUSTER, 60, "recording rules, which have no endpoint")
"""No scrape job: Prometheus computes its series. All of them are kept."""
