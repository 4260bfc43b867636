"""Decides which hosts to add for pending pods, where each pod goes, and why. Pure.

`plan` turns a `Snapshot` into a `Plan`. docs/explanation/planner.md explains how.
"""

from __future__ import annotations

from controllers.planner.plan import Budget, Fate, NewHost, Plan, Verdict
from controllers.planner.planner import plan
from controllers.planner.policy import Policy
from controllers.planner.supply import HostSupply, Place, PoolSupply, Snapshot, Taint
from controllers.planner.wishes import Gang, Operator, Pod, Preference, Requirement, Shape, Spot, Toleration

__all__ = [
    "Budget",
    "Fate",
    "Gang",
    "HostSupply",
    "NewHost",
    "Operator",
    "Place",
    "Plan",
    "Pod",
    "Policy",
    "PoolSupply",
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
