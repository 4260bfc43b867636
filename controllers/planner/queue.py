"""The order in which units get room if there isn't enough for all: by how long they have waited.

Each level of priority is a head start of some hours, so the order is that of virtual arrivals: a waiting unit precedes everything
that arrives later than its head start, no matter how much arrives.
"""

from __future__ import annotations

from dataclasses import dataclass

from controllers.planner.policy import Policy
from controllers.planner.tables import Tables
from controllers.planner.wishes import Pod


@dataclass(frozen=True)
class Unit:
    """Pods that are considered together: all pods of a gang, or pods of a kind that arrived within one grain of time.

    counts: pods of each kind. arrival_s: virtual, including the head start. since_s: when its first pod was created.
    """

    counts: dict[int, int]
    pods: dict[int, list[Pod]]
    arrival_s: int
    since_s: int
    gang: str = ""

    @property
    def size(self) -> int:
        return sum(self.counts.values())


def units(tables: Tables, waiting: list[list[Pod]]) -> list[Unit]:
    """Return the queue, first arrivals first. waiting: pods by kind."""
    levels = {priority: at for at, priority in enumerate(sorted({pod.priority for pod in tables.snapshot.pods}))}
    apart: dict[tuple[int, int], list[Pod]] = {}
    gangs: dict[str, dict[int, list[Pod]]] = {}
    for kind, pods in enumerate(waiting):
        for pod in pods:
            if pod.gang:
                gangs.setdefault(pod.gang, {}).setdefault(kind, []).append(pod)
            else:
                apart.setdefault((kind, arrival(pod, levels, tables.policy)), []).append(pod)
    queue = [_unit({kind: pods}, at) for (kind, at), pods in apart.items()]
    for gang, by_kind in gangs.items():
        first = min(arrival(pod, levels, tables.policy) for pods in by_kind.values() for pod in pods)
        queue.append(_unit(by_kind, first, gang))
    return sorted(queue, key=lambda unit: (unit.arrival_s, unit.gang, sorted(unit.counts)))


def arrival(pod: Pod, levels: dict[int, int], policy: Policy) -> int:
    early = pod.since_s - levels[pod.priority] * policy.head_start_s
    return early - early % policy.grain_s


def _unit(by_kind: dict[int, list[Pod]], at: int, gang: str = "") -> Unit:
    for pods in by_kind.values():
        pods.sort(key=lambda pod: (pod.since_s, pod.name))
    counts = {kind: len(pods) for kind, pods in by_kind.items()}
    return Unit(counts, by_kind, at, min(pods[0].since_s for pods in by_kind.values()), gang)


def holds(unit: Unit, tables: Tables) -> bool:
    """Whether room is held for the unit now: it has waited long enough, and this isn't a pause between two holds."""
    policy, waited = tables.policy, tables.snapshot.taken_s - unit.since_s - tables.policy.patience_s
    return waited >= 0 and waited % (policy.hold_s + policy.rest_s) < policy.hold_s
