"""The plan of an update for people: changes by component, with what costs money and what would be lost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from cluster.costs import CostItem, CostKind
from cluster.spec import Cluster
from operations import costs
from operations.words import component as component_words
from operations.words import plain
from stacks.events import ResourceStarted
from stacks.policies import data
from stacks.policies.model import Resource


class Action(StrEnum):
    """What happens to a resource, worst first."""

    REPLACE = "replace"
    DELETE = "delete"
    UPDATE = "update"
    CREATE = "create"


_ACTIONS = {
    "create": Action.CREATE,
    "import": Action.CREATE,
    "update": Action.UPDATE,
    "replace": Action.REPLACE,
    "create-replacement": Action.REPLACE,
    "delete-replaced": Action.REPLACE,
    "delete": Action.DELETE,
}
_RELEVANT = {*_ACTIONS, "same"}
"""Operations that change a resource or leave it. Others, such as reads and refreshes, are ignored."""
_STACK = "pulumi:pulumi:Stack"
_PROVIDERS = "pulumi:providers:"


@dataclass(frozen=True)
class ResourceChange:
    """A change of one resource. type: Pulumi's type. what: the type in plain words. because: the properties that force a
    replacement, else those that differ. loses: data that would be lost for good."""

    action: Action
    name: str
    type: str
    what: str
    because: tuple[str, ...] = ()
    loses: str | None = None


@dataclass(frozen=True)
class Component:
    """Resources that belong together. what: the component in plain words."""

    name: str
    what: str
    changes: tuple[ResourceChange, ...]


@dataclass(frozen=True)
class StackPlan:
    """unchanged: number of unchanged resources. before, after: cost items of the whole stack."""

    components: tuple[Component, ...] = ()
    unchanged: int = 0
    before: tuple[CostItem, ...] = ()
    after: tuple[CostItem, ...] = ()

    @property
    def changes(self) -> tuple[ResourceChange, ...]:
        return tuple(change for component in self.components for change in component.changes)

    @property
    def losses(self) -> tuple[ResourceChange, ...]:
        return tuple(change for change in self.changes if change.loses)

    def count(self, action: Action) -> int:
        return sum(change.action is action for change in self.changes)

    def disk_gib(self, items: tuple[CostItem, ...]) -> tuple[int, int]:
        """Return the total GiB of all disks: (minimum, maximum)."""
        disks = [item for item in items if item.kind is CostKind.DISK]
        return sum(d.least * d.gib for d in disks), sum(d.most * d.gib for d in disks)

    def to_json(self) -> dict[str, Any]:
        return {
            "components": [asdict(component) for component in self.components],
            "unchanged": self.unchanged,
            "takes": {"before": [asdict(item) for item in self.before], "after": [asdict(item) for item in self.after]},
        }


@dataclass
class Planner:
    """Collects the events of one run of the engine: pass `hear` to `stacks.events.on_resource_start`.

    pools: pool -> the most machines that it may have.
    """

    pools: Mapping[str, int] = field(default_factory=dict)
    _heard: dict[str, list[ResourceStarted]] = field(default_factory=dict)
    """URN -> the engine's events about it."""

    @staticmethod
    def of(cluster: Cluster) -> Planner:
        return Planner({name: pool.max for name, pool in cluster.spec.pools.items()})

    def hear(self, event: ResourceStarted) -> None:
        if event.operation in _RELEVANT and event.type != _STACK:
            self._heard.setdefault(event.urn, []).append(event)

    def plan(self) -> StackPlan:
        """Return the plan from the events so far."""
        parents = {event.parent for events in self._heard.values() for event in events}
        own = {urn: events for urn, events in self._heard.items() if not _is_component(urn, events[0], parents)}
        changes: dict[str, list[ResourceChange]] = {}
        for urn, events in own.items():
            if (change := _change(urn, events)) and not _is_new_provider(change):
                changes.setdefault(_parent(events), []).append(change)
        # The engine's order of resources varies.
        components = tuple(
            Component(*_named(parent), tuple(sorted(changes[parent], key=_order))) for parent in sorted(changes)
        )
        real = {urn: events for urn, events in own.items() if not events[0].type.startswith(_PROVIDERS)}
        unchanged = sum(all(event.operation == "same" for event in events) for events in real.values())
        return StackPlan(
            components, unchanged, self._cost_items(real, before=True), self._cost_items(real, before=False)
        )

    def _cost_items(self, events_by_urn: Mapping[str, list[ResourceStarted]], *, before: bool) -> tuple[CostItem, ...]:
        """Return the cost items before the update, or after it."""
        resources = []
        for urn, events in events_by_urn.items():
            inputs = [event.before if before else event.after for event in events]
            last = next((value for value in reversed(inputs) if value is not None), None)
            if last is not None:
                resources.append(costs.PricedResource(events[0].type, _name(urn), _parent(events), last))
        return costs.items(resources, self.pools)


def _is_component(urn: str, event: ResourceStarted, parents: set[str]) -> bool:
    """Return whether a resource is a component: components are parents and don't exist in a cloud."""
    return event.type.startswith("menagerie:") or (urn in parents and not (event.before or event.after))


def _is_new_provider(change: ResourceChange) -> bool:
    """Return whether this is a new provider, which changes nothing in a cloud."""
    return change.type.startswith(_PROVIDERS) and change.action is Action.CREATE


def _change(urn: str, events: list[ResourceStarted]) -> ResourceChange | None:
    actions = [_ACTIONS[event.operation] for event in events if event.operation in _ACTIONS]
    if not actions:
        return None
    action = Action.REPLACE if Action.REPLACE in actions else actions[0]
    forcing = tuple(dict.fromkeys(path for event in events for path in event.forcing))
    changed = tuple(dict.fromkeys(path for event in events for path in event.changed))
    because = forcing if action is Action.REPLACE and forcing else changed if action is not Action.CREATE else ()
    type_, name = events[0].type, _name(urn)
    gone = action in (Action.REPLACE, Action.DELETE)
    inputs = next((event.before for event in events if event.before), {})
    resource = Resource(type_, name, urn, inputs=inputs, protect=any(event.protected for event in events))
    return ResourceChange(action, name, type_, plain(type_), because, data.kept_by(resource) if gone else None)


def _order(change: ResourceChange) -> tuple[int, str, str]:
    return list(Action).index(change.action), change.what, change.name


def _parent(events: Iterable[ResourceStarted]) -> str:
    """Return the component of a resource, "" for the stack itself."""
    parent = next((event.parent for event in events if event.parent), "")
    return "" if f"::{_STACK}::" in parent else parent


def _named(parent: str) -> tuple[str, str]:
    """Return a component's name and what it is."""
    if not parent:
        return "", "whole cluster"
    type_ = parent.rsplit("::", 2)[1].rpartition("$")[2]
    return _name(parent), component_words(type_)


def _name(urn: str) -> str:
    return urn.rpartition("::")[2]
