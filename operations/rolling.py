"""Rolls over nodes: one or a few at a time, and never more of a pool than may be out of service."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from enum import StrEnum

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from clients.waiting import held_back, is_ready
from cluster.quantities import share_of
from cluster.spec import Cluster
from operations.drain import Pause

_SHOWN = 5


class RollState(StrEnum):
    """The final state of a host."""

    DONE = "done"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    NOT_BEGUN = "not begun"


@dataclass(frozen=True)
class RollOutcome:
    """The result for a host. text: why it failed, or notes about it."""

    host: str
    state: RollState
    seconds: float = 0.0
    text: str = ""


@dataclass(frozen=True)
class Rolled:
    """The result of a roll. why_stopped: why some hosts were not started, "" if all were."""

    outcomes: tuple[RollOutcome, ...]
    why_stopped: str = ""
    interrupted: bool = False

    @property
    def succeeded(self) -> bool:
        return all(outcome.state is RollState.DONE for outcome in self.outcomes)


class _InterruptedError(Exception):
    """Raised in the threads of an interrupted run, when they pause."""


Work = Callable[[str, Pause], str]
"""Does the whole work on a host, with this pause function; returns notes about it."""
WhyNot = Callable[[str, Collection[str]], str]
"""Returns why a host may not start while the given hosts are in progress, "" if it may."""
Look = Callable[[], WhyNot]
"""Reads the cluster's current state."""


@dataclass
class Roll:
    """A roll over hosts, which start in this order."""

    hosts: Sequence[str]
    work: Work
    look: Look
    at_once: int = 1
    tell: Callable[[RollOutcome], None] = lambda _: None
    _stop: threading.Event = field(default_factory=threading.Event)
    _ended: dict[str, RollOutcome] = field(default_factory=dict)
    _under_way: dict[Future[RollOutcome], str] = field(default_factory=dict)

    def run(self) -> Rolled:
        """Start hosts while there is room. After the first failure start no more, and wait for those in progress."""
        pending, why, interrupted = list(self.hosts), "", False
        with ThreadPoolExecutor(max_workers=self.at_once) as pool:
            try:
                while pending or self._under_way:
                    why = self._begin(pool, pending) if not why else why
                    if not self._under_way:
                        break
                    why = self._collect() or why
            except KeyboardInterrupt:
                interrupted, why = True, "interrupted"
                self._stop.set()
                while self._under_way:
                    self._collect()
        left = [RollOutcome(host, RollState.NOT_BEGUN) for host in self.hosts if host not in self._ended]
        outcomes = [*self._ended.values(), *left]
        return Rolled(tuple(outcomes), why if left or interrupted else "", interrupted)

    def _begin(self, pool: ThreadPoolExecutor, pending: list[str]) -> str:
        """Start what may start. Return why nothing is in progress, "" if something is."""
        why, why_not = "", None
        for host in tuple(pending):
            if len(self._under_way) >= self.at_once:
                return ""
            why_not = why_not or self.look()
            if reason := why_not(host, tuple(self._under_way.values())):
                why = why or reason
            else:
                pending.remove(host)
                self._under_way[pool.submit(self._work_on, host)] = host
        return "" if self._under_way else why

    def _collect(self) -> str:
        """Wait for a host to finish. Return why no further host may start, "" if none failed."""
        done, _ = wait(self._under_way, return_when=FIRST_COMPLETED)
        why = ""
        for future in done:
            outcome = future.result()
            self._ended[self._under_way.pop(future)] = outcome
            self.tell(outcome)
            if outcome.state is RollState.FAILED:
                why = f"{outcome.host} failed"
        return why

    def _work_on(self, host: str) -> RollOutcome:
        began = time.monotonic()

        def ended(state: RollState, text: str) -> RollOutcome:
            return RollOutcome(host, state, round(time.monotonic() - began, 1), text)

        try:
            return ended(RollState.DONE, self.work(host, self._pause))
        except _InterruptedError:
            return ended(RollState.INTERRUPTED, "")
        # Any error ends the roll, but not the other threads.
        except Exception as error:  # noqa: BLE001
            return ended(RollState.FAILED, str(error) or repr(error))

    def _pause(self, seconds: float) -> None:
        if self._stop.wait(seconds):
            raise _InterruptedError


def out_of_service(node: client.V1Node) -> bool:
    """Return whether a node accepts no pods now, for any reason."""
    return bool(node.spec.unschedulable) or not is_ready(node) or bool(held_back(node))


def room(cluster: Cluster, nodes: Callable[[], Iterable[client.V1Node]]) -> Look:
    """Return a check whether one more node of a host's pool may be out of service, by `pools.<name>.max_unavailable`.

    nodes: called before hosts start. Machines that never joined don't count. A host that is out already may always start.
    """
    pools: Mapping[str, str] = {host.name: pool for pool, host in cluster.host_list()}

    def look() -> WhyNot:
        counts, out = Counter[str](), defaultdict[str, set[str]](set)
        try:
            own_nodes = [node for node in nodes() if node.metadata.name in pools]
        except (ApiException, urllib3.exceptions.HTTPError) as error:
            reason = f"the API server does not respond ({type(error).__name__})"
            return lambda host, under_way: reason
        for node in own_nodes:
            pool = pools[node.metadata.name]
            counts[pool] += 1
            if out_of_service(node):
                out[pool].add(node.metadata.name)
        return lambda host, under_way: why_not(
            pools[host], counts[pools[host]], out[pools[host]] | _of(pools[host], under_way), host
        )

    def _of(pool: str, hosts: Collection[str]) -> set[str]:
        return {host for host in hosts if pools[host] == pool}

    def why_not(pool: str, count: int, out: Collection[str], host: str) -> str:
        limit = share_of(cluster.spec.pools[pool].max_unavailable, count)
        if host in out or len(out) < limit:
            return ""
        named = ", ".join(sorted(out)[:_SHOWN]) + (" …" if len(out) > _SHOWN else "")
        return f"{len(out)} of {count} nodes of pool {pool} are out of service already ({named}); max_unavailable is {limit}"

    return look
