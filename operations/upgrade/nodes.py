"""Upgrades workers: drains and configures a canary, then as many at a time as their pools can spare.

A killed run leaves its state on the nodes: the mark of `operations.drain`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from clients.access import API_TIMEOUT_S
from clients.nodes import programs
from clients.waiting import Report, held_back, is_ready, verdict, wait_until
from cluster import preflight
from cluster.errors import FailedError, TimedOutError
from cluster.releases import NodePrograms
from cluster.spec import Cluster
from operations.drain import DrainMark, Pause, Rules, cordon, empty, mark_of, uncordon, way_out
from operations.reboot_needs import all_nodes
from operations.record.journal import Journal
from operations.rolling import Look, Roll, Rolled, RollOutcome, RollState, room

BY = "upgrade"
"""The verb in the mark on nodes."""
CANARY = 1

Configure = Callable[[tuple[str, ...]], Mapping[str, str]]
"""Configures hosts to match the spec. Returns host -> why it failed, for failed hosts."""


@dataclass(frozen=True)
class Nodes:
    """api: creates a client, which threads don't share. ready_s: how long to wait for a node, in seconds.

    at_once: maximum size of a batch. look: checks whether a pool can spare one more; None for `operations.rolling.room`.
    """

    cluster: Cluster
    api: Callable[[], client.ApiClient]
    configure: Configure
    operation: Journal
    rules: Rules = field(default_factory=Rules)
    ready_s: float = 600.0
    at_once: int = 64
    look: Look | None = None

    def bring(self, hosts: Sequence[str], report: Report, tell: Callable[[RollOutcome], None]) -> Rolled:
        """Upgrade all hosts, batch by batch. Start no further batch after one with a failure.

        Hosts that an earlier run left come first: they are out of service already.
        """
        begun = {node.metadata.name for node in all_nodes(self.api()) if is_begun(node)}
        pending = sorted(hosts, key=lambda host: host not in begun)
        ended: list[RollOutcome] = []
        why, size = "", CANARY
        while pending and not why:
            batch, why = self._batch(pending, size)
            if not batch:
                break
            pending = [host for host in pending if host not in batch]
            rolled = self._bring(batch, report, tell)
            ended += rolled.outcomes
            why, size = _why_stop(rolled), self.at_once
            if rolled.interrupted:
                return Rolled((*ended, *_not_begun(pending)), "interrupted", interrupted=True)
        return Rolled((*ended, *_not_begun(pending)), why if pending else "")

    def _batch(self, pending: Sequence[str], size: int) -> tuple[tuple[str, ...], str]:
        """Return the next hosts, or why there are none."""
        look = self.look or room(self.cluster, lambda: all_nodes(self.api()))
        why_not, chosen, why = look(), list[str](), ""
        for host in pending:
            if len(chosen) < size:
                reason = why_not(host, tuple(chosen))
                why = why or reason
                if not reason:
                    chosen.append(host)
        return tuple(chosen), "" if chosen else why

    def _bring(self, batch: tuple[str, ...], report: Report, tell: Callable[[RollOutcome], None]) -> Rolled:
        emptied = self._in_parallel(batch, lambda host, pause: self._empty(host, _named(host, report), pause))
        empty = {outcome_.host for outcome_ in emptied.outcomes if outcome_.state is RollState.DONE}
        done = tuple(host for host in batch if host in empty)
        rest = [outcome_ for outcome_ in emptied.outcomes if outcome_.state is not RollState.DONE]
        failed: Mapping[str, str] = {}
        if done and not emptied.interrupted:
            report(f"{', '.join(done[:5])}{' …' if len(done) > 5 else ''}: configuring")
            failed = self.configure(done)
            back = self._in_parallel(done, lambda host, pause: self._back(host, failed, _named(host, report), pause))
        else:
            back = Rolled(tuple(RollOutcome(host, RollState.INTERRUPTED) for host in done), "", emptied.interrupted)
        outcomes = (*rest, *back.outcomes)
        for outcome in outcomes:
            tell(outcome)
        good = [outcome_.host for outcome_ in outcomes if outcome_.state is RollState.DONE]
        if good:
            versions = self._expected
            self.operation.done(f"workers {', '.join(good)}", version=versions.kubelet, containerd=versions.containerd)
        return Rolled(outcomes, "", emptied.interrupted or back.interrupted)

    def _in_parallel(self, hosts: tuple[str, ...], work: Callable[[str, Pause], str]) -> Rolled:
        def anyone() -> Callable[[str, Collection[str]], str]:
            return lambda host, under_way: ""

        return Roll(hosts, work, anyone, len(hosts)).run()

    def _empty(self, host: str, report: Report, pause: Pause) -> str:
        api = self.api()
        cordon(api, host, DrainMark(BY, f"to Kubernetes {self._expected}"))
        empty(api, host, BY, self.rules, report, pause)
        return ""

    def _back(self, host: str, failed: Mapping[str, str], report: Report, pause: Pause) -> str:
        if host in failed:
            text = f"{failed[host]}. Its node is empty and stays cordoned. Fix the host, then {way_out(host)}"
            raise FailedError(text, code="workers-failed")
        api = self.api()
        try:
            wait_until(lambda: self._missing(api, host), self.ready_s, report, every_s=1.0, pause=pause)
        except TimedOutError as error:
            text = f"{error}. Its node stays cordoned. Fix the host, then {way_out(host)}"
            raise FailedError(text, code="workers-failed") from None
        uncordon(api, host, BY)
        return ""

    def _missing(self, api: client.ApiClient, host: str) -> str:
        """Return why a node is not back with the right versions and untainted, "" if it is."""
        expected = self._expected
        try:
            node = client.CoreV1Api(api).read_node(host, _request_timeout=API_TIMEOUT_S)
        except (ApiException, urllib3.exceptions.HTTPError) as error:
            return f"the API server does not respond ({type(error).__name__})"
        running = programs(node)
        if running.kubelet != expected.kubelet:
            return f"the kubelet reports version {running.kubelet or 'nothing yet'}"
        if running.containerd != expected.containerd:
            return f"the kubelet reports containerd {running.containerd or 'not responding'}"
        if not is_ready(node):
            return "its node is not Ready yet"
        if self._is_checked(host) and (result := verdict(node)) and result.status != "True":
            return f"its preflight reports {result.reason}: {result.message}"
        return held_back(node)

    @property
    def _expected(self) -> NodePrograms:
        return NodePrograms.beside(self.cluster.spec.kubernetes.version)

    def _is_checked(self, host: str) -> bool:
        pool = next((pool for pool, machine in self.cluster.host_list() if machine.name == host), None)
        return pool is not None and preflight.checked(self.cluster.spec.pools[pool])


def _named(host: str, report: Report) -> Report:
    return lambda text: report(text if host in text else f"{host}: {text}")


def is_begun(node: client.V1Node) -> bool:
    """Return whether a run of this verb has taken it out of service."""
    mark = mark_of(node)
    return mark is not None and mark.by == BY


def _why_stop(rolled: Rolled) -> str:
    broken = [outcome.host for outcome in rolled.outcomes if outcome.state is not RollState.DONE]
    return f"{', '.join(broken[:5])} failed" if broken else ""


def _not_begun(hosts: Sequence[str]) -> tuple[RollOutcome, ...]:
    return tuple(RollOutcome(host, RollState.NOT_BEGUN) for host in hosts)
