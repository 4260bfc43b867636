"""Read what node_exporter does not read of a host, and write it to its textfile collector.

Only `host` and `devices` ask other programs; the rest is pure. Standard library only, for the host's Python.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

PREFIX = "menagerie_"
METRICS = {
    "unit_active": ("gauge", "1 if systemd has the unit running."),
    "unit_restarts_total": ("counter", "Times that systemd has restarted the unit by itself."),
    "agent_tunnels": ("gauge", "Tunnels of konnectivity's agent to API servers; 0 if no agent answers."),
    "preflight_passed": ("gauge", "1 if the host passed its own checks the last time."),
    "preflight_timestamp_seconds": ("gauge", "When the host last checked itself."),
    "reboot_required": ("gauge", "1 if a package or a program asks for a reboot."),
    "reader_failed": ("gauge", "1 if what is read did not answer, so that its metrics are missing."),
    "reader_stuck": ("gauge", "1 if GPUs were not read for minutes, so that their metrics were removed."),
    "gpus": ("gauge", "GPUs that the host's PCI bus has, and that the driver has."),
    "gpu_info": ("gauge", "What a GPU is."),
    "gpu_busy_ratio": ("gauge", "Share of time in which a kernel ran on the GPU; unknown with MIG."),
    "gpu_memory_used_bytes": ("gauge", "Memory of the GPU in use."),
    "gpu_memory_bytes": ("gauge", "Memory of the GPU."),
    "gpu_power_watts": ("gauge", "Power of the GPU's board."),
    "gpu_temperature_celsius": ("gauge", "Temperature of the GPU."),
    "gpu_memory_temperature_celsius": ("gauge", "Temperature of the GPU's memory."),
    "gpu_clock_hertz": ("gauge", "Clock of the GPU's multiprocessors."),
    "gpu_slowed": ("gauge", "1 if heat or a power brake slows the GPU down."),
    "gpu_remapped_rows": ("gauge", "Memory rows replaced after errors that could not be corrected."),
    "gpu_remap_failed": ("gauge", "1 if a memory row could not be replaced."),
    "gpu_pod": ("gauge", "1 for the pod that has the GPU."),
}
"""Name without prefix -> kind and meaning. `cluster.metrics.nodes` counts their series."""


class Sample(NamedTuple):
    """A value of a metric. labels: (name, value) of each label."""

    name: str
    value: float
    labels: tuple[tuple[str, str], ...] = ()


class Unanswered(Exception):
    """What is read did not answer. The text says what and why, in one line."""


def page(samples: Iterable[Sample]) -> str:
    """Return the text of a file for the textfile collector."""
    by_name: dict[str, list[Sample]] = {}
    for sample in samples:
        by_name.setdefault(sample.name, []).append(sample)
    lines = []
    for name, each in by_name.items():
        kind, meaning = METRICS[name]
        lines += [f"# HELP {PREFIX}{name} {meaning}", f"# TYPE {PREFIX}{name} {kind}"]
        lines += [f"{PREFIX}{name}{_labels(sample.labels)} {sample.value:.15g}" for sample in each]
    return "".join(f"{line}\n" for line in lines)


def _labels(labels: tuple[tuple[str, str], ...]) -> str:
    """Return labels in the text format, which escapes three characters."""
    escapes = {"\\": r"\\", '"': r"\"", "\n": r"\n"}
    escaped = (f'{name}="{"".join(escapes.get(char, char) for char in value)}"' for name, value in labels)
    return f"{{{','.join(escaped)}}}" if labels else ""
