"""What waits in a cluster, and why: pods with the same reason together, a line each. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controllers.autoscaler.decide import decide
from controllers.autoscaler.observed import Observed
from controllers.planner import Fate, Verdict


@dataclass(frozen=True)
class Wait:
    """Pods that wait for the same reason. since_s: Unix time at which the first of them began to wait."""

    fate: Fate
    reason: str
    pods: tuple[str, ...]
    since_s: float


def waits(observed: Observed) -> tuple[Wait, ...]:
    """Return what waits, longest first. The reasons are those of the autoscaler's next pass, or of one if there were an autoscaler."""
    decided = decide(observed.world, observed.memory, observed.settings, observed.limits)
    since_s = {pod.name: pod.since_s for pod in observed.world.waiting}
    lines = [
        Wait(fate, reason, tuple(pods), min(since_s.get(pod, observed.world.now_s) for pod in pods))
        for (fate, reason), pods in by_reason(decided.verdicts).items()
    ]
    return tuple(sorted(lines, key=lambda line: (line.since_s, line.reason)))


def by_reason(verdicts: Mapping[str, Verdict]) -> dict[tuple[Fate, str], list[str]]:
    """Return (fate, reason) -> the pods that have both, by name."""
    alike: dict[tuple[Fate, str], list[str]] = {}
    for pod, verdict in sorted(verdicts.items()):
        alike.setdefault((verdict.fate, verdict.reason), []).append(pod)
    return alike


def some(pods: Sequence[str]) -> str:
    """Return pods as one: ``team/web-1 and 3 like it``."""
    return pods[0] if len(pods) == 1 else f"{pods[0]} and {len(pods) - 1} like it"
