"""The autoscaler's planner: which hosts to add for the pods that wait, where each of them goes, and why.

Pure: `plan` makes a `Plan` of a `Snapshot`. docs/autoscaler.md says how.
"""

from __future__ import annotations

from scheduling.planner.plan import Budget, Fate, NewHost, Plan, Verdict
from scheduling.planner.planner import plan
from scheduling.planner.policy import Policy
from scheduling.planner.supply import Host, Place, Pool, Snapshot, Taint
from scheduling.planner.wishes import Gang, Operator, Pod, Preference, Requirement, Shape, Spot, Toleration

__all__ = [
    "Budget",
    "Fate",
    "Gang",
    "Host",
    "NewHost",
    "Operator",
    "Place",
    "Plan",
    "Pod",
    "Policy",
    "Pool",
    "Preference",
    "Requirement",
    "Shape",
    "Snapshot",
    "Spot",
    "Taint",
    "Toleration",
    "Verdict",
    "plan",
]
