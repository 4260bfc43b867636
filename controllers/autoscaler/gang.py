"""Which pods start together or not at all: those that name one PodGroup (`components.scheduling.gangs`). The one place that knows how."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Membership:
    """name: the gang's, with its namespace. size: of the whole gang, with members that run. within: see `planner.Gang`."""

    name: str
    size: int
    within: str | None = None


Gangs = Mapping[str, Membership | None]
"""By the names of all PodGroups; None for one that asks for nothing together."""
NO_GANGS: Gangs = {}


class NoGroupError(ValueError):
    """A pod names a PodGroup that is not there: nobody knows how many its gang is."""


def gangs_of(groups: Iterable[Mapping[str, Any]]) -> Gangs:
    """Of the cluster's PodGroups, as the API has them."""
    found: dict[str, Membership | None] = {}
    for each in groups:
        name, spec = f"{each['metadata']['namespace']}/{each['metadata']['name']}", each["spec"]
        policy = (spec.get("schedulingPolicy") or {}).get("gang")
        topology = (spec.get("schedulingConstraints") or {}).get("topology") or ()
        within = next((part["key"] for part in topology), None)
        found[name] = Membership(name, policy["minCount"], within) if policy else None
    return found


def group_of(pod: Mapping[str, Any]) -> str | None:
    """The PodGroup that a pod names, with its namespace; None for a pod of its own."""
    name = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
    return f"{pod['metadata']['namespace']}/{name}" if name else None


def gang_of(pod: Mapping[str, Any], groups: Gangs) -> Membership | None:
    """The gang of a pod, None for a pod of its own. NoGroupError."""
    name = group_of(pod)
    if name is None:
        return None
    if name not in groups:
        raise NoGroupError(
            f"its PodGroup {name.partition('/')[2]} is not there, so nobody knows how many start together"
        )
    return groups[name]
