"""Gangs: pods that start together or not at all, because they name one PodGroup (`components.scheduling.gangs`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Membership:
    """A pod's gang. name: with its namespace. size: of the whole gang, running members included. within: see `planner.Gang`."""

    name: str
    size: int
    within: str | None = None


Gangs = Mapping[str, Membership | None]
"""PodGroup's name -> its gang, None if its pods need not start together."""
NO_GANGS: Gangs = {}


class NoGroupError(ValueError):
    """A pod names a PodGroup that does not exist, so the size of its gang is unknown."""


def gangs_of(groups: Iterable[Mapping[str, Any]]) -> Gangs:
    """Return the gangs of the cluster's PodGroups. groups: as the API returns them."""
    gangs: dict[str, Membership | None] = {}
    for group in groups:
        name, spec = f"{group['metadata']['namespace']}/{group['metadata']['name']}", group["spec"]
        policy = (spec.get("schedulingPolicy") or {}).get("gang")
        topology = (spec.get("schedulingConstraints") or {}).get("topology") or ()
        within = next((part["key"] for part in topology), None)
        gangs[name] = Membership(name, policy["minCount"], within) if policy else None
    return gangs


def group_of(pod: Mapping[str, Any]) -> str | None:
    """Return the PodGroup that a pod names, with its namespace; None for a single pod."""
    name = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
    return f"{pod['metadata']['namespace']}/{name}" if name else None


def gang_of(pod: Mapping[str, Any], groups: Gangs) -> Membership | None:
    """Return the gang of a pod, None for a single pod. Errors: raises NoGroupError if its PodGroup does not exist."""
    name = group_of(pod)
    if name is None:
        return None
    if name not in groups:
        raise NoGroupError(
            f"its PodGroup {name.partition('/')[2]} does not exist, so the number of pods that start together is unknown"
        )
    return groups[name]
