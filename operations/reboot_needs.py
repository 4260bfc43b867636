"""Which hosts of sites need a reboot, by what they say themselves. Changes nothing.

What a killed run left is on the nodes: the mark of `operations.drain`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from kubernetes import client

from clients.access import API_TIMEOUT_S
from clients.remote.executor import UNREACHABLE, Executor
from cluster.spec import Cluster
from operations.drain import Fate, Mark, OutOfServiceError, Rules, fate, mark_of, pods_on, refused

BY = "reboot"
"""Who marks nodes."""
PROGRAM = "/usr/local/sbin/menagerie-boot"
ASK_S = 60.0
_ASKED_AT_ONCE = 32
_SHOWN = 20


@dataclass(frozen=True)
class Found:
    """What a host, and its Node, say. failed: why it can't be rebooted, "" where it can.

    mark: of a run that began with it. pods: how many would be evicted; scratch: how many of them keep files on the node.
    """

    host: str
    pool: str
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    machine: Mapping[str, Any] = field(default_factory=dict)
    boot_id: str = ""
    booted_at: float = 0.0
    mark: Mark | None = None
    failed: str = ""
    unreachable: bool = False
    pods: int = 0
    scratch: int = 0

    @property
    def needs(self) -> bool:
        """Whether it is to be rebooted, or given back after it was."""
        return bool(self.mark or (self.reasons and not self.failed))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Plan:
    """What was found of all hosts that were asked."""

    found: tuple[Found, ...]

    @property
    def hosts(self) -> tuple[str, ...]:
        """Those to reboot; what an earlier run left comes first, for it is out of service already."""
        needing = [each for each in self.found if each.needs]
        return tuple(each.host for each in sorted(needing, key=lambda each: each.mark is None))

    @property
    def failed(self) -> tuple[Found, ...]:
        """Those that could not be asked or may not be rebooted."""
        return tuple(each for each in self.found if each.failed and not each.needs)


def ask(executor: Executor, host: str) -> dict[str, Any] | tuple[str, bool]:
    """What the host says of itself; (why it said nothing, whether it could not be reached) where it didn't."""
    done = executor.start(host, [PROGRAM, "status", "--json"]).wait(ASK_S)
    if done.code == 0:
        for line in done.text.splitlines():
            if line.startswith("{"):
                return dict(json.loads(line))
    if "No such file" in done.text or "not found" in done.text:
        return f"{PROGRAM} isn't there; run: menagerie configure CLUSTER --tags boot", False
    return done.reason, done.code in (UNREACHABLE, 124)


def plan(cluster: Cluster, api: client.ApiClient, hosts: Sequence[str], executor: Executor, rules: Rules) -> Plan:
    """Ask all hosts, and the API about their nodes. Changes nothing.

    Raises OutOfServiceError for pods that the rules don't let go, of all hosts at once.
    """
    pools = {host.name: pool for pool, host in cluster.host_list()}
    nodes = {node.metadata.name: node for node in all_nodes(api)}
    with ThreadPoolExecutor(max_workers=_ASKED_AT_ONCE) as threads:
        answers = list(threads.map(lambda host: ask(executor, host), hosts))
    found = [found_of(host, pools[host], nodes.get(host), told) for host, told in zip(hosts, answers, strict=True)]
    lost: list[str] = []
    for index, each in enumerate(found):
        if each.needs:
            pods = pods_on(api, each.host)
            leaving = [pod for pod in pods if fate(pod, rules)[0] in (Fate.LEAVES, Fate.REFUSED)]
            scratch = sum(any(volume.empty_dir for volume in pod.spec.volumes or ()) for pod in leaving)
            found[index] = replace(each, pods=len(leaving), scratch=scratch)
            lost += [f"{line} (on {each.host})" for line in refused(pods, rules)]
    if lost:
        told = "\n  ".join(lost[:_SHOWN])
        raise OutOfServiceError(
            f"{len(lost)} pods would be lost with their nodes:\n  {told}\nDelete or move them, or say --evict-unmanaged for pods "
            "without a controller; nothing was touched"
        )
    return Plan(tuple(found))


def all_nodes(api: client.ApiClient) -> list[client.V1Node]:
    return list(client.CoreV1Api(api).list_node(_request_timeout=API_TIMEOUT_S).items)


def found_of(host: str, pool: str, node: client.V1Node | None, told: dict[str, Any] | tuple[str, bool]) -> Found:
    mark = mark_of(node) if node else None
    own = mark if mark and mark.by == BY else None
    if isinstance(told, tuple):
        return Found(host, pool, mark=own, failed=told[0], unreachable=told[1])
    failed = ""
    if told["reboot"] and node is None:
        failed = (
            "it is no node yet, so nothing says when it is back; run: menagerie configure CLUSTER, or reboot it by hand"
        )
    elif told["reboot"] and mark and not own:
        failed = f"it is out of service by {mark.by}: {mark.why}"
    reasons, notes = tuple(told["reboot"]), tuple(told["notes"])
    return Found(host, pool, reasons, notes, told["machine"], told["boot_id"], told["booted_at"], own, failed)


def pods_of(found: Iterable[Found]) -> tuple[int, int]:
    """Pods that would be evicted, and how many of them keep files on their node."""
    needing = [each for each in found if each.needs]
    return sum(each.pods for each in needing), sum(each.scratch for each in needing)
