"""The state of a cluster's key rings: what the stack's configuration says, and what the stack was built with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Protocol

from cluster.key_rings import RINGS, Ring, RingName
from stacks.automation import PROJECT, Summary
from stacks.errors import StackError
from stacks.pki import ring_key

Rings = Mapping[RingName, Ring]


class Stack(Protocol):
    """What is needed of `stacks.automation.ClusterStack`."""

    def values(self) -> dict[str, str]: ...

    def configure(self, provider: str, key: str, value: str) -> None: ...

    def outputs(self) -> dict[str, object]: ...

    def preview(self) -> Summary: ...

    def up(self) -> tuple[Summary, dict[str, object]]: ...


class ForeignRingsError(StackError):
    """This checkout's configuration lags behind what the stack was built with."""

    def __init__(self, cluster: str, name: RingName, configured: Ring, built: Ring) -> None:
        super().__init__(
            f"{cluster}: key ring {name} was built with {built}, and the configuration of this checkout says "
            f"{configured}: keys in use would be deleted. Take over Pulumi.{cluster}.yaml from whoever rotated it; "
            f"it holds the line menagerie:{ring_key(name)}: {built}"
        )


def configured(stack: Stack) -> dict[RingName, Ring]:
    """What the next `up` makes. ValueError where the configuration says something else than a state."""
    known = stack.values()
    return {name: Ring.parse(known.get(ring_key(name), str(Ring()))) for name in RINGS}


def built(outputs: Mapping[str, object]) -> dict[RingName, Ring]:
    """What the last `up` made; a stack that was built before there were rings has the first of each."""
    known: dict[str, str] = json.loads(str(outputs.get("key_rings", "{}")))
    return {name: Ring.parse(known.get(name, str(Ring()))) for name in RINGS}


def refuse_foreign(cluster: str, stack: Stack, outputs: Mapping[str, object]) -> None:
    """ForeignRingsError where an `up` would skip a state: it must be at most a step from what was built."""
    wanted = configured(stack)
    for name, ring in built(outputs).items():
        if wanted[name] != ring and not wanted[name].is_neighbour(ring):
            raise ForeignRingsError(cluster, name, wanted[name], ring)


def configure(stack: Stack, name: RingName, ring: Ring) -> None:
    """Have the next `up` bring a ring to a state."""
    stack.configure(PROJECT, ring_key(name), str(ring))
