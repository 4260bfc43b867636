"""Reads clusters with an operator's credentials, as the verbs do: the spec from the checkout, access from the stack."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from clients.access import Access
from cluster.errors import FailedError
from cluster.spec import Cluster
from components.drawing.shapes import Drawing
from controllers.autoscaler.observed import observe
from controllers.bookkeeping.bucket import ledger_of
from controllers.web import reading
from controllers.web.facts import Capacity, ClusterFacts, Spec
from controllers.web.kept import NO_METERING, DayKeeper, Kept
from controllers.web.reading import ClusterReader, capacity_of
from operations import stack
from operations.record import Ledger, read_ledger
from operations.status import Status
from operations.status.read import read_status

HISTORY = 50
"""Number of past operations that pages have."""
ACCESS_KEPT_S = 600.0
"""After this time, access is read from the stack again: a rotation replaces the operator's certificate."""


@dataclass(frozen=True)
class Ways:
    """How a cluster is read. load: its model. draw: the drawing of a model. explain: an error in words for people."""

    load: Callable[[], Cluster]
    draw: Callable[[Cluster], Drawing]
    explain: Callable[[Exception], str]


class Reach:
    """Reads one cluster. Its model and its access are read at first use, by whichever part comes first; the others wait."""

    def __init__(self, ways: Ways) -> None:
        self._ways = ways
        self._lock = threading.Lock()
        self._spec: Spec | None = None
        self._access: Access | None = None
        self._access_s = float("-inf")
        self._days: DayKeeper | None = None

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

    def status(self) -> Status | None:
        cluster, access = self.access()
        return read_status(cluster, access) if access else None

    def capacity(self) -> Capacity | None:
        cluster, access = self.access()
        return capacity_of(cluster, observe(cluster, access)) if access else None

    def operations(self) -> Ledger:
        cluster, access = self.access()
        return read_ledger(cluster.name, access, HISTORY)

    def bills(self, so_far: Callable[[Kept], None]) -> Kept | None:
        """Return the days of the ledger, None if the cluster is not built."""
        cluster, access = self.access()
        if access is None:
            return None
        store = ledger_of(access)
        if store is None:
            raise FailedError(f"it has no bucket yet; run: ./menagerie up {cluster.name}", code="ledger")
        if self._days is None:
            self._days = DayKeeper(cluster.name, time.time)
        return self._days.read(store, so_far, "" if cluster.spec.metering else NO_METERING)


def reading_all(ways: Mapping[str, Ways]) -> AbstractContextManager[Callable[[], tuple[ClusterFacts, ...]]]:
    """Read these clusters while a block runs: see `controllers.web.reading.reading`."""
    return reading.reading([ClusterReader(name, Reach(own), own.explain) for name, own in ways.items()])
