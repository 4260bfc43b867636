"""One namespace of a team or a person."""

from __future__ import annotations

from components.monitoring.dashboards.model import Dashboard, Panel, Query, Variable, chart, number

_OF = 'namespace="$namespace"'


def _quota(title: str, resource: str, unit: str = "short") -> Panel:
    of = f'{_OF}, resource="{resource}"'
    return Panel(
        title,
        (
            Query(f'kube_resourcequota{{{of}, type="used"}}', "used"),
            Query(f'kube_resourcequota{{{of}, type="hard"}}', "allowed"),
        ),
        unit,
    )


TEAM = Dashboard(
    "menagerie-team",
    "Team",
    "What a team's namespace uses, and what it may use. Choose the namespace at the top.",
    (
        number("GPUs now", f"menagerie:gpus_in_use:count{{{_OF}}}"),
        number("How busy they are", f"menagerie:gpu_utilisation:avg{{{_OF}}}", unit="percentunit"),
        number("Their power", f"menagerie:gpu_power_watts:sum{{{_OF}}}", unit="watt"),
        chart("GPUs in use", f"menagerie:gpus_in_use:count{{{_OF}}}"),
        chart("How busy GPUs are", f"menagerie:gpu_utilisation:avg{{{_OF}}}", unit="percentunit",
              about="Held idle is used: the others wait for them."),
        _quota("GPUs requested", "requests.nvidia.com/gpu"),
        chart("CPUs in use", f"menagerie:pod_cpus:rate5m{{{_OF}}}"),
        _quota("CPUs requested", "requests.cpu"),
        chart("Memory in use", f"menagerie:pod_memory_bytes:sum{{{_OF}}}", unit="bytes"),
        _quota("Memory requested", "requests.memory", "bytes"),
        _quota("Pods", "count/pods"),
    ),
    variables=(Variable("namespace", "menagerie:pod_cpus:rate5m", "namespace"),),
)  # fmt: skip
