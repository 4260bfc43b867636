"""Reads clusters with an operator's credentials, as the verbs do: the spec from the checkout, access from the stack."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from clients.access import Access
from cluster.spec import Cluster
from components.drawing.live import Health
from components.drawing.shapes import Drawing
from controllers.autoscaler.capacity import rows
from controllers.autoscaler.observed import Observed, observe
from controllers.autoscaler.waits import waits
from controllers.autoscaler.world import Node
from controllers.web.facts import Capacity, ClusterFacts, Drawn, NodeState, Spec
from controllers.web.live import drawn
from controllers.web.parts import Reader
from operations import stack
from operations.record import Ledger, read_ledger
from operations.status import Status, read_status

HISTORY = 50
"""Number of past operations that pages have."""
ACCESS_KEPT_S = 600.0
"""After this time, access is read from the stack again: a rotation replaces the operator's certificate."""
_SLOWLY_S = 30.0


@dataclass(frozen=True)
class Ways:
    """How a cluster is read. load: its model. draw: the drawing of a model. explain: an error in words for people."""

    load: Callable[[], Cluster]
    draw: Callable[[Cluster], Drawing]
    explain: Callable[[Exception], str]


class Reach:
    """A cluster's model and access. Both are read at first use, by whichever part comes first; the others wait."""

    def __init__(self, ways: Ways) -> None:
        self._ways = ways
        self._lock = threading.Lock()
        self._spec: Spec | None = None
        self._access: Access | None = None
        self._access_s = float("-inf")

    def spec(self) -> Spec:
        """Return the model with its drawing, as it was when it could be loaded first."""
        with self._lock:
            if self._spec is None:
                cluster = self._ways.load()
                self._spec = Spec(cluster, self._ways.draw(cluster))
            return self._spec

    def access(self) -> tuple[Cluster, Access | None]:
        """Return the model and the access, None if the cluster is not built. Raises what the stack's backend raises."""
        cluster = self.spec().cluster
        with self._lock:
            if time.monotonic() - self._access_s > (ACCESS_KEPT_S if self._access else 0.0):
                self._access = stack.access_if_built(cluster)
                self._access_s = time.monotonic()
            return cluster, self._access


class ClusterReader:
    """Keeps the facts of one cluster current."""

    def __init__(self, name: str, ways: Ways) -> None:
        self._name, self._reach = name, Reach(ways)
        self._drawn: Drawn | None = None
        self._lock = threading.Lock()
        self._spec = Reader(f"the spec of {name}", self._reach.spec, ways.explain, after=self._draw)
        self._status = Reader(f"the status of {name}", self._read_status, ways.explain, after=self._draw)
        self._capacity = Reader(
            f"the capacity of {name}", self._read_capacity, ways.explain, _SLOWLY_S, after=self._draw
        )
        self._operations = Reader(f"the operations of {name}", self._read_operations, ways.explain, _SLOWLY_S)

    def start(self) -> None:
        for reader in self._readers:
            reader.start()

    def stop(self) -> None:
        for reader in self._readers:
            reader.stop()

    def facts(self) -> ClusterFacts:
        """Return what was read last."""
        parts = (self._spec.part, self._status.part, self._capacity.part, self._operations.part)
        return ClusterFacts(self._name, *parts, self._drawn)

    @property
    def _readers(self) -> tuple[Reader[Spec], Reader[Status | None], Reader[Capacity | None], Reader[Ledger]]:
        return self._spec, self._status, self._capacity, self._operations

    def _draw(self) -> None:
        with self._lock:  # who draws last has the newest values of all parts
            capacity = self._capacity.part.value
            self._drawn = drawn(self._reach.spec(), self._status.part.value, capacity.nodes if capacity else None)

    def _read_status(self) -> Status | None:
        cluster, access = self._reach.access()
        return read_status(cluster, access) if access else None

    def _read_capacity(self) -> Capacity | None:
        cluster, access = self._reach.access()
        return capacity_of(cluster, observe(cluster, access)) if access else None

    def _read_operations(self) -> Ledger:
        cluster, access = self._reach.access()
        return read_ledger(cluster.name, access, HISTORY)


@contextmanager
def reading(ways: Mapping[str, Ways]) -> Iterator[Callable[[], tuple[ClusterFacts, ...]]]:
    """Read these clusters while the block runs. Yield a function that returns what was read last."""
    readers = [ClusterReader(name, own) for name, own in ways.items()]
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
    there = {node.name: NodeState(node.name, node.pool, *_state(node)) for node in world.nodes}
    absent = [
        NodeState(host.name, pool, Health.DOWN, "not joined")
        for pool, host in cluster.host_list()
        if host.name not in there
    ]
    notices = (*(f"{source} did not answer" for source in world.missing), *world.notices)
    listed = tuple(rows(cluster.name, world, observed.memory))
    return Capacity(listed, waits(observed), (*there.values(), *absent), notices)


def _state(node: Node) -> tuple[Health, str]:
    if node.cordoned:
        why = f"out of service ({node.mark})" if node.mark else "cordoned"
        return Health.OUT, why if node.ready else f"{why}, NotReady"
    if node.starting:
        return Health.PARTLY, "starting"
    return (Health.HEALTHY, "Ready") if node.ready else (Health.DOWN, "NotReady")
