"""The state of a cluster's key rings: in the stack's configuration, and as the stack was built."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from cluster.errors import RefusedError
from cluster.key_rings import FORMER, RINGS, WITH_FORMER, Ring, RingName, ring_key
from stacks.backend import PROJECT

if TYPE_CHECKING:
    from stacks.automation import ClusterStack, Summary

Rings = Mapping[RingName, Ring]


class Stack(Protocol):
    """The part of `stacks.automation.ClusterStack` that is used here."""

    def values(self) -> dict[str, str]: ...

    def configure(self, provider: str, key: str, value: str) -> None: ...

    def outputs(self) -> dict[str, object]: ...

    def preview(self) -> Summary: ...

    def up(self) -> tuple[Summary, dict[str, object]]: ...


def configured(stack: Stack) -> dict[RingName, Ring]:
    """Return the states that the next `up` creates. Raises ValueError if the configuration has an invalid state."""
    values = stack.values()
    return {name: Ring.of(name, values.get(ring_key(name))) for name in RINGS}


def built(outputs: Mapping[str, object]) -> dict[RingName, Ring]:
    """Return the states that the last `up` created. Stacks that are older than key rings have the first generation of each.
    Stacks that are older than the separate authority for kubelets' serving certificates have `FORMER` for that ring."""
    states: dict[str, str] = json.loads(str(outputs.get("key_rings", "{}")))
    former = {name: str(FORMER) for name in WITH_FORMER} if outputs else {}
    return {name: Ring.of(name, states.get(name, former.get(name))) for name in RINGS}


def carry_over(stack: Stack, outputs: Mapping[str, object]) -> tuple[RingName, ...]:
    """Make the next `up` of an older stack introduce the authorities that it lacks, in addition to those it has. Return their
    rings; () for a stack that has them, or is new. A rotation of each ring completes this."""
    values, before = stack.values(), built(outputs)
    lacking = tuple(name for name in WITH_FORMER if before[name] == Ring((FORMER,)) and ring_key(name) not in values)
    for name in lacking:
        configure(stack, name, Ring((FORMER,)).next)
    return lacking


@contextmanager
def carried_over(stack: ClusterStack, outputs: Mapping[str, object]) -> Iterator[None]:
    """Apply `carry_over` for the length of a preview, and undo it."""
    lacking = carry_over(stack, outputs)
    try:
        yield
    finally:
        for name in lacking:
            stack.unset(PROJECT, ring_key(name))


def refuse_foreign(cluster: str, stack: Stack, outputs: Mapping[str, object]) -> None:
    """Raise RefusedError if an `up` would skip a state: it may be at most one step from the built one."""
    configured_rings = configured(stack)
    for name, ring in built(outputs).items():
        if configured_rings[name] != ring and not configured_rings[name].is_neighbour(ring):
            raise RefusedError(
                f"{cluster}: key ring {name} was built with {ring}, but this checkout's configuration has "
                f"{configured_rings[name]}: keys in use would be deleted. Get Pulumi.{cluster}.yaml from the person who rotated the "
                f"ring; it contains the line menagerie:{ring_key(name)}: {ring}",
                code="foreign-rings",
            )


def configure(stack: Stack, name: RingName, ring: Ring) -> None:
    """Set the state of a ring for the next `up`."""
    stack.configure(PROJECT, ring_key(name), str(ring))
