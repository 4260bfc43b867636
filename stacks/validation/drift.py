"""Changes behind the engine's back: what somebody at a console does, undone when it has been looked at."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sandbox.simcloud.values import Value
from sandbox.simcloud.world import Record, World

# Properties that any type may have and that can be changed without breaking anything.
_HARMLESS = ("tags", "labels", "description")


@dataclass(frozen=True)
class Drift:
    """property: what was changed of the resource; "" where the whole resource was deleted."""

    urn: str
    type: str
    property: str = ""

    def __str__(self) -> str:
        return f"{self.type} {self.urn.rpartition('::')[2]}" + (
            f": {self.property}" if self.property else " as a whole"
        )


@contextmanager
def drifted(world: World, owned: Iterable[Record], protected: Collection[str]) -> Iterator[tuple[Drift, ...]]:
    """One harmless property of one resource of each type is another for the length of a block, and one resource that
    nothing needs is not there. owned: what the stack knows of. protected: URNs of what nobody would delete."""
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
    """What is changed, with the resource as it is and the property's new value; of each type the first."""
    found: dict[str, tuple[Drift, tuple[Record, Value]]] = {}
    for record in records:
        for name in _HARMLESS:
            new = _other(record.inputs.get(name))
            if new is not None:
                found.setdefault(record.type, (Drift(record.urn, record.type, name), (record, new)))
    return dict(found.values())


def _other(value: Value) -> Value:
    """Another value in the place of a text or of texts by name; None where it is neither."""
    if isinstance(value, dict):
        return {**value, "changed": "by-hand"}
    return f"{value}, changed by hand" if isinstance(value, str) and value else None
