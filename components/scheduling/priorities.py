"""The cluster's priority classes: which pods go first, and in which order they give way. Pure.

The set is fixed: if teams created classes themselves, each would soon outrank all the others. The API does not allow the value
of a class to change, so the values are far apart. Kubernetes' own `system-node-critical` and `system-cluster-critical` rank
above all of them.

cluster-autoscaler adds no hosts for pods below -10, and removes hosts that run nothing else (its FAQ, "expendable pods"). At
-10, balloons still count. The lowest class is for work on other teams' hosts; it is created together with the policies that
guard it (`controllers.tenancy.capacity`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SERVICES, NORMAL, LOW, BALLOONS = "services", "normal", "low", "balloons"


@dataclass(frozen=True)
class Priority:
    """A class. preempts: whether its pods may preempt others. default: whether pods that name no class get it."""

    name: str
    value: int
    about: str
    preempts: bool = True
    default: bool = False


PRIORITIES = (
    Priority(SERVICES, 1_000_000, "What people wait for: serving, notebooks, data that others read."),
    Priority(NORMAL, 1_000, "Experiments, and whatever names no class.", default=True),
    Priority(LOW, 100, "Experiments that can wait: they give way to normal ones, and put nobody out.", preempts=False),
    Priority(BALLOONS, -10, "Hold hosts warm that nobody uses yet; whoever wants the host gets it.", preempts=False),
)
"""Highest first. docs/explanation/scheduling.md has the same table; a test compares the two."""


def objects() -> tuple[dict[str, Any], ...]:
    """Return the PriorityClasses."""
    return tuple(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": priority.name},
            "value": priority.value,
            "globalDefault": priority.default,
            "preemptionPolicy": "PreemptLowerPriority" if priority.preempts else "Never",
            "description": priority.about,
        }
        for priority in PRIORITIES
    )
