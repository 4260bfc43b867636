"""Finds which hosts at sites need a reboot, by their own reports. Changes nothing.

A killed run leaves its state on the nodes: the mark of `operations.drain`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from kubernetes import client

from clients.paging import models
from clients.remote.executor import UNREACHABLE, Executor
from clients.timeouts import HOST_COMMAND_S
from cluster.spec import Cluster
from operations.drain import DrainMark, OutOfServiceError, PodFate, Rules, fate, mark_of, pods_on, refused

BY = "reboot"
"""The verb in the mark on nodes."""
PROGRAM = "/usr/local/sbin/menagerie-boot"
_ASKED_AT_ONCE = 32
_SHOWN = 20


@dataclass(frozen=True)
class RebootNeed:
    """State of a host and its Node. failed: why it can't be rebooted, "" if it can.

    mark: of an earlier run that started with it. pods: how many would be evicted; scratch: how many of them have files on
    the node.
    """

    host: str
    pool: str
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    machine: Mapping[str, Any] = field(default_factory=dict)
    boot_id: str = ""
    booted_at: float = 0.0
    mark: DrainMark | None = None
    failed: str = ""
    unreachable: bool = False
    pods: int = 0
    scratch: int = 0

    @property
    def needs(self) -> bool:
        """Whether to reboot it, or to finish an earlier reboot."""
        return bool(self.mark or (self.reasons and not self.failed))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class RebootPlan:
    """The state of all hosts that were asked."""

    needs: tuple[RebootNeed, ...]

    @property
    def hosts(self) -> tuple[str, ...]:
        """Hosts to reboot. Those left by an earlier run come first: they are out of service already."""
        needing = [each for each in self.needs if each.needs]
        return tuple(each.host for each in sorted(needing, key=lambda each: each.mark is None))

    @property
    def failed(self) -> tuple[RebootNeed, ...]:
        """Hosts that could not be asked or must not be rebooted."""
        return tuple(each for each in self.needs if each.failed and not each.needs)


def read_report(executor: Executor, cluster: str, host: str) -> dict[str, Any] | tuple[str, bool]:
    """Return the host's report, or (why there is none, whether the host was unreachable)."""
    done = executor.start(host, [PROGRAM, "status", "--json"]).wait(HOST_COMMAND_S)
    if done.code == 0:
        for line in done.text.splitlines():
            if line.startswith("{"):
                return dict(json.loads(line))
    if "No such file" in done.text or "not found" in done.text:
        return f"{PROGRAM} is missing; run: ./menagerie configure {cluster} --tags boot --limit {host}", False
    return done.reason, done.code in (UNREACHABLE, 124)


def plan(cluster: Cluster, api: client.ApiClient, hosts: Sequence[str], executor: Executor, rules: Rules) -> RebootPlan:
    """Ask all hosts for their state and the API for their nodes. Changes nothing.

    Raises one OutOfServiceError for all pods on all hosts that the rules don't let go.
    """
    pools = {host.name: pool for pool, host in cluster.host_list()}
    nodes = {node.metadata.name: node for node in all_nodes(api)}
    with ThreadPoolExecutor(max_workers=_ASKED_AT_ONCE) as threads:
        answers = list(threads.map(lambda host: read_report(executor, cluster.name, host), hosts))
    states = [
        reboot_need(cluster, host, pools[host], nodes.get(host), report)
        for host, report in zip(hosts, answers, strict=True)
    ]
    lost: list[str] = []
    for index, state in enumerate(states):
        if state.needs:
            pods = pods_on(api, state.host)
            leaving = [pod for pod in pods if fate(pod, rules)[0] in (PodFate.LEAVES, PodFate.REFUSED)]
            scratch = sum(any(volume.empty_dir for volume in pod.spec.volumes or ()) for pod in leaving)
            states[index] = replace(state, pods=len(leaving), scratch=scratch)
            lost += [f"{line} (on {state.host})" for line in refused(pods, rules)]
    if lost:
        report = "\n  ".join(lost[:_SHOWN])
        raise OutOfServiceError(
            f"{len(lost)} pods would be lost with their nodes:\n  {report}\nNothing was changed. Delete or move them, or use "
            "--evict-unmanaged for pods without a controller."
        )
    return RebootPlan(tuple(states))


def all_nodes(api: client.ApiClient) -> list[client.V1Node]:
    return list(models(client.CoreV1Api(api).list_node))


def reboot_need(
    cluster: Cluster, host: str, pool: str, node: client.V1Node | None, report: dict[str, Any] | tuple[str, bool]
) -> RebootNeed:
    mark = mark_of(node) if node else None
    own_mark = mark if mark and mark.by == BY else None
    if isinstance(report, tuple):
        return RebootNeed(host, pool, mark=own_mark, failed=report[0], unreachable=report[1])
    failed = ""
    if report["reboot"] and node is None:
        way_out = f"run: ./menagerie configure {cluster.name} --limit {host}, or reboot it by hand"
        failed = f"it is not a node yet, so nothing would show that it is back; {way_out}"
    elif report["reboot"] and mark and not own_mark:
        failed = f"it is out of service ({mark.by}: {mark.why})"
    reasons, notes = tuple(report["reboot"]), tuple(report["notes"])
    return RebootNeed(
        host, pool, reasons, notes, report["machine"], report["boot_id"], report["booted_at"], own_mark, failed
    )


def pods_of(hosts: Iterable[RebootNeed]) -> tuple[int, int]:
    """Return how many pods would be evicted, and how many of them have files on their node."""
    needing = [host for host in hosts if host.needs]
    return sum(host.pods for host in needing), sum(host.scratch for host in needing)
