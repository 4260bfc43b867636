"""Workers brought to the wanted versions: a canary, then as many at a time as their pools can spare, each drained.

What a killed run left is on the nodes: the mark of `operations.drain`.
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
from cluster.errors import TimedOutError
from cluster.releases import NodePrograms
from cluster.spec import Cluster
from operations.drain import Mark, Pause, Rules, cordon, empty, mark_of, uncordon, way_out
from operations.reboot_needs import all_nodes
from operations.record.journal import Journal
from operations.rolling import Look, Outcome, Roll, Rolled, State, room

BY = "upgrade"
"""Who marks nodes."""
CANARY = 1

Configure = Callable[[tuple[str, ...]], Mapping[str, str]]
"""Brings hosts to the spec. Host -> why it failed, of those that did."""


@dataclass(frozen=True)
class Nodes:
    """api: makes a client, which threads don't share. ready_s: how long a node is waited for, in seconds.

    at_once: hosts of a batch at most. look: whether a pool can spare one more; None for `operations.rolling.room`.
    """

    cluster: Cluster
    api: Callable[[], client.ApiClient]
    configure: Configure
    operation: Journal
    rules: Rules = field(default_factory=Rules)
    ready_s: float = 600.0
    at_once: int = 64
    look: Look | None = None

    def bring(self, hosts: Sequence[str], report: Report, tell: Callable[[Outcome], None]) -> Rolled:
        """All hosts, a batch at a time; after the first batch with a failure none is begun.

        What an earlier run left comes first: it is out of service already.
        """
        begun = {node.metadata.name for node in all_nodes(self.api()) if is_begun(node)}
        pending = sorted(hosts, key=lambda host: host not in begun)
        ended: list[Outcome] = []
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
        """The next hosts, and why there are none."""
        look = self.look or room(self.cluster, lambda: all_nodes(self.api()))
        why_not, chosen, why = look(), list[str](), ""
        for host in pending:
            if len(chosen) < size:
                reason = why_not(host, tuple(chosen))
                why = why or reason
                if not reason:
                    chosen.append(host)
        return tuple(chosen), "" if chosen else why

    def _bring(self, batch: tuple[str, ...], report: Report, tell: Callable[[Outcome], None]) -> Rolled:
        emptied = self._side_by_side(batch, lambda host, pause: self._empty(host, _named(host, report), pause))
        empty = {each.host for each in emptied.outcomes if each.state is State.DONE}
        done = tuple(host for host in batch if host in empty)
        rest = [each for each in emptied.outcomes if each.state is not State.DONE]
        failed: Mapping[str, str] = {}
        if done and not emptied.interrupted:
            report(f"{', '.join(done[:5])}{' …' if len(done) > 5 else ''}: configured")
            failed = self.configure(done)
            back = self._side_by_side(done, lambda host, pause: self._back(host, failed, _named(host, report), pause))
        else:
            back = Rolled(tuple(Outcome(host, State.INTERRUPTED) for host in done), "", emptied.interrupted)
        outcomes = (*rest, *back.outcomes)
        for outcome in outcomes:
            tell(outcome)
        good = [each.host for each in outcomes if each.state is State.DONE]
        if good:
            wanted = self._wanted
            self.operation.done(f"workers {', '.join(good)}", version=wanted.kubelet, containerd=wanted.containerd)
        return Rolled(outcomes, "", emptied.interrupted or back.interrupted)

    def _side_by_side(self, hosts: tuple[str, ...], work: Callable[[str, Pause], str]) -> Rolled:
        def anyone() -> Callable[[str, Collection[str]], str]:
            return lambda host, under_way: ""

        return Roll(hosts, work, anyone, len(hosts)).run()

    def _empty(self, host: str, report: Report, pause: Pause) -> str:
        api = self.api()
        cordon(api, host, Mark(BY, f"to Kubernetes {self._wanted}"))
        empty(api, host, BY, self.rules, report, pause)
        return ""

    def _back(self, host: str, failed: Mapping[str, str], report: Report, pause: Pause) -> str:
        if host in failed:
            raise UpgradeHostError(f"{failed[host]}. Its node is empty and stays cordoned. To mend it, {way_out(host)}")
        api = self.api()
        try:
            wait_until(lambda: self._missing(api, host), self.ready_s, report, every_s=1.0, pause=pause)
        except TimedOutError as error:
            raise UpgradeHostError(f"{error}. Its node stays cordoned. To mend it, {way_out(host)}") from None
        uncordon(api, host, BY)
        return ""

    def _missing(self, api: client.ApiClient, host: str) -> str:
        """Why a node is not back with the wanted versions and free."""
        wanted = self._wanted
        try:
            node = client.CoreV1Api(api).read_node(host, _request_timeout=API_TIMEOUT_S)
        except (ApiException, urllib3.exceptions.HTTPError) as error:
            return f"the API server does not answer ({type(error).__name__})"
        found = programs(node)
        if found.kubelet != wanted.kubelet:
            return f"the kubelet says that it is {found.kubelet or 'nothing yet'}"
        if found.containerd != wanted.containerd:
            return f"the kubelet says that containerd is {found.containerd or 'not answering'}"
        if not is_ready(node):
            return "its node is not Ready yet"
        if self._is_checked(host) and (said := verdict(node)) and said.status != "True":
            return f"its preflight says {said.reason}: {said.message}"
        return held_back(node)

    @property
    def _wanted(self) -> NodePrograms:
        return NodePrograms.beside(self.cluster.spec.kubernetes.version)

    def _is_checked(self, host: str) -> bool:
        pool = next((pool for pool, each in self.cluster.host_list() if each.name == host), None)
        return pool is not None and preflight.checked(self.cluster.spec.pools[pool])


class UpgradeHostError(Exception):
    """A host did not come back as it should; the text says what to do next."""


def _named(host: str, report: Report) -> Report:
    return lambda text: report(text if host in text else f"{host}: {text}")


def is_begun(node: client.V1Node) -> bool:
    """Whether a run of this verb has it out of service."""
    mark = mark_of(node)
    return mark is not None and mark.by == BY


def _why_stop(rolled: Rolled) -> str:
    broken = [outcome.host for outcome in rolled.outcomes if outcome.state is not State.DONE]
    return f"{', '.join(broken[:5])} failed" if broken else ""


def _not_begun(hosts: Sequence[str]) -> tuple[Outcome, ...]:
    return tuple(Outcome(host, State.NOT_BEGUN) for host in hosts)
