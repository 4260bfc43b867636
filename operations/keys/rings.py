"""The state of a cluster's key rings: what the stack's configuration says, and what the stack was built with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from cluster.errors import RefusedError
from cluster.key_rings import FORMER, RINGS, WITH_FORMER, Ring, RingName
from stacks.automation import ClusterStack, Summary
from stacks.backend import PROJECT
from stacks.pki import ring_key

Rings = Mapping[RingName, Ring]


class Stack(Protocol):
    """What is needed of `stacks.automation.ClusterStack`."""

    def values(self) -> dict[str, str]: ...

    def configure(self, provider: str, key: str, value: str) -> None: ...

    def outputs(self) -> dict[str, object]: ...

    def preview(self) -> Summary: ...

    def up(self) -> tuple[Summary, dict[str, object]]: ...


def configured(stack: Stack) -> dict[RingName, Ring]:
    """What the next `up` makes. ValueError where the configuration says something else than a state."""
    known = stack.values()
    return {name: Ring.of(name, known.get(ring_key(name))) for name in RINGS}


def built(outputs: Mapping[str, object]) -> dict[RingName, Ring]:
    """What the last `up` made; a stack that was built before there were rings has the first of each, and one from before
    kubelets' serving certificates had an authority of their own has `FORMER` of that."""
    known: dict[str, str] = json.loads(str(outputs.get("key_rings", "{}")))
    former = {name: str(FORMER) for name in WITH_FORMER} if outputs else {}
    return {name: Ring.of(name, known.get(name, former.get(name))) for name in RINGS}


def carry_over(stack: Stack, outputs: Mapping[str, object]) -> tuple[RingName, ...]:
    """Have the next `up` of a stack from before introduce the authorities that it lacks, beside what it has, and say of which
    rings. A rotation of each ends that. None for a stack that has them, or is new."""
    known, before = stack.values(), built(outputs)
    lacking = tuple(name for name in WITH_FORMER if before[name] == Ring((FORMER,)) and ring_key(name) not in known)
    for name in lacking:
        configure(stack, name, Ring((FORMER,)).next)
    return lacking


@contextmanager
def carried_over(stack: ClusterStack, outputs: Mapping[str, object]) -> Iterator[None]:
    """`carry_over` for the length of a preview, which changes nothing."""
    lacking = carry_over(stack, outputs)
    try:
        yield
    finally:
        for name in lacking:
            stack.forget(PROJECT, ring_key(name))


def refuse_foreign(cluster: str, stack: Stack, outputs: Mapping[str, object]) -> None:
    """RefusedError where an `up` would skip a state: it must be at most a step from what was built."""
    wanted = configured(stack)
    for name, ring in built(outputs).items():
        if wanted[name] != ring and not wanted[name].is_neighbour(ring):
            raise RefusedError(
                f"{cluster}: key ring {name} was built with {ring}, and the configuration of this checkout says "
                f"{wanted[name]}: keys in use would be deleted. Take over Pulumi.{cluster}.yaml from whoever rotated it; "
                f"it holds the line menagerie:{ring_key(name)}: {ring}",
                code="foreign-rings",
            )


def configure(stack: Stack, name: RingName, ring: Ring) -> None:
    """Have the next `up` bring a ring to a state."""
    stack.configure(PROJECT, ring_key(name), str(ring))
