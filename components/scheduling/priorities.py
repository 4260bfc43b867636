"""Who goes first: the cluster's priority classes, and the order in which pods give way. Pure.

A fixed set: a class that each team made for itself would soon be above all others'. Values can't be changed once a class is there
(the API refuses it), so they stand far apart. Kubernetes' own `system-node-critical` and `system-cluster-critical` are above all.

cluster-autoscaler adds no host for pods below -10, and lets hosts go that have no others (its FAQ, "expendable pods"): so balloons
are worth a host. Below all stands the class of work on other teams' hosts, which comes with the policies that watch over it
(`controllers.tenancy.capacity`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SERVICES, NORMAL, LOW, BALLOONS = "services", "normal", "low", "balloons"


@dataclass(frozen=True)
class Priority:
    """A class. preempts: whether its pods may put others out to get their place. default: of pods that name none."""

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
"""Highest first. docs/explanation/scheduling.md has them as a table; a test holds the two together."""


def objects() -> tuple[dict[str, Any], ...]:
    """The PriorityClasses."""
    return tuple(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": each.name},
            "value": each.value,
            "globalDefault": each.default,
            "preemptionPolicy": "PreemptLowerPriority" if each.preempts else "Never",
            "description": each.about,
        }
        for each in PRIORITIES
    )
