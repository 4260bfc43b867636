"""Keeps what pages show of clusters current: a thread for each part, whoever's credentials it reads with."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from cluster.spec import Cluster
from components.drawing.live import Health
from controllers.autoscaler.capacity import rows
from controllers.autoscaler.observed import Observed
from controllers.autoscaler.waits import waits
from controllers.autoscaler.world import Node
from controllers.web.facts import Capacity, ClusterFacts, Drawn, NodeState, Spec
from controllers.web.kept import Kept
from controllers.web.live import drawn
from controllers.web.parts import Reader
from operations.record.ledger import Ledger
from operations.status.model import Status

_SLOWLY_S, _SELDOM_S = 30.0, 600.0
"""Pauses of parts that cost the cluster more, and of the ledger, which has a new day once a day."""


class Reads(Protocol):
    """Reads the parts of one cluster. Each may raise anything. None of a part means that the cluster is not built."""

    def spec(self) -> Spec: ...

    def status(self) -> Status | None: ...

    def capacity(self) -> Capacity | None: ...

    def operations(self) -> Ledger: ...

    def bills(self, so_far: Callable[[Kept], None]) -> Kept | None:
        """Return the days of the ledger. so_far: called with those that were read so far."""


class ClusterReader:
    """Keeps the facts of one cluster current. explain: an error in words."""

    def __init__(self, name: str, reads: Reads, explain: Callable[[Exception], str]) -> None:
        self._name, self._reads = name, reads
        self._drawn: Drawn | None = None
        self._lock = threading.Lock()
        self.spec = Reader(f"the spec of {name}", reads.spec, explain, after=self._draw)
        self.status = Reader(f"the status of {name}", reads.status, explain, after=self._draw)
        self.capacity = Reader(f"the capacity of {name}", reads.capacity, explain, _SLOWLY_S, after=self._draw)
        self.operations = Reader(f"the operations of {name}", reads.operations, explain, _SLOWLY_S)
        self.bills = Reader(f"the ledger of {name}", self._bills, explain, _SELDOM_S)

    def start(self) -> None:
        for reader in self.readers:
            reader.start()

    def stop(self) -> None:
        for reader in self.readers:
            reader.stop()

    def facts(self) -> ClusterFacts:
        """Return what was read last."""
        parts = (self.spec.part, self.status.part, self.capacity.part, self.operations.part, self.bills.part)
        return ClusterFacts(self._name, *parts, self._drawn)

    @property
    def readers(self) -> tuple[Reader[Any], ...]:
        return self.spec, self.status, self.capacity, self.operations, self.bills

    def _bills(self) -> Kept | None:
        return self._reads.bills(self.bills.so_far)

    def _draw(self) -> None:
        with self._lock:  # who draws last has the newest values of all parts
            capacity = self.capacity.part.value
            self._drawn = drawn(self._reads.spec(), self.status.part.value, capacity.nodes if capacity else None)


@contextmanager
def reading(readers: Sequence[ClusterReader]) -> Iterator[Callable[[], tuple[ClusterFacts, ...]]]:
    """Read while the block runs. Yield a function that returns what was read last."""
    for reader in readers:
        reader.start()
    try:
        yield lambda: tuple(reader.facts() for reader in readers)
    finally:
        for reader in readers:
            reader.stop()


def capacity_of(cluster: Cluster, observed: Observed) -> Capacity:
    """Return what pages show of an observed cluster, without the cluster itself."""
    world = observed.world
    there = {node.name: NodeState(node.name, node.pool, *state_of(node)) for node in world.nodes}
    absent = [
        NodeState(host.name, pool, Health.DOWN, "not joined")
        for pool, host in cluster.host_list()
        if host.name not in there
    ]
    notices = (*(f"{source} did not answer" for source in world.missing), *world.notices)
    listed = tuple(rows(cluster.name, world, observed.memory))
    return Capacity(listed, waits(observed), (*there.values(), *absent), notices)


def state_of(node: Node) -> tuple[Health, str]:
    """Return a node's health, and its state in words."""
    if node.cordoned:
        why = f"out of service ({node.mark})" if node.mark else "cordoned"
        return Health.OUT, why if node.ready else f"{why}, NotReady"
    if node.starting:
        return Health.PARTLY, "starting"
    return (Health.HEALTHY, "Ready") if node.ready else (Health.DOWN, "NotReady")
