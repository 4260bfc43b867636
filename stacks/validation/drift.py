"""Changes behind the engine's back, such as somebody makes at a console; undone after the check."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sandbox.simcloud.values import Value
from sandbox.simcloud.world import Record, World

# Properties that any type may have and that can be changed harmlessly.
_HARMLESS = ("tags", "labels", "description")


@dataclass(frozen=True)
class Drift:
    """property: the changed property of the resource; "" if the whole resource was deleted."""

    urn: str
    type: str
    property: str = ""

    def __str__(self) -> str:
        return f"{self.type} {self.urn.rpartition('::')[2]}" + (
            f": {self.property}" if self.property else " as a whole"
        )


@contextmanager
def drifted(world: World, owned: Iterable[Record], protected: Collection[str]) -> Iterator[tuple[Drift, ...]]:
    """For a block, change one harmless property of one resource of each type, and delete one resource that no other needs.

    owned: what the stack knows. protected: URNs of resources that nobody would delete."""
    before = sorted(owned, key=lambda record: record.urn)
    changes = _changes(before)
    chosen = {change.urn for change in changes}
    doomed = next((r for r in before if r.urn not in chosen and r.urn not in protected and not world.users(r)), None)
    for change, (record, value) in changes.items():
        world.change(*record.key, **{change.property: value})
    if doomed:
        world.remove(*doomed.key)
    try:
        yield (*changes, *([Drift(doomed.urn, doomed.type)] if doomed else []))
    finally:
        for record in before:
            if world.get(*record.key) is not record:
                world.put(record)


def _changes(records: list[Record]) -> dict[Drift, tuple[Record, Value]]:
    """Return the changes, each with the resource before it and the property's new value; one resource of each type."""
    by_type: dict[str, tuple[Drift, tuple[Record, Value]]] = {}
    for record in records:
        for name in _HARMLESS:
            new = _other(record.inputs.get(name))
            if new is not None:
                by_type.setdefault(record.type, (Drift(record.urn, record.type, name), (record, new)))
    return dict(by_type.values())


def _other(value: Value) -> Value:
    """Return a different value for a text or a mapping of texts; None for anything else."""
    if isinstance(value, dict):
        return {**value, "changed": "by-hand"}
    return f"{value}, changed by hand" if isinstance(value, str) and value else None
