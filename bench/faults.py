"""The table of faults that the lab is put to, one at a time or two at once, and what must hold of each.

Rows F1 to F30 are those of `tests/faults/README.md`, which also says where rows are tried that are not here: faults of a
kind that no machine is needed for, and those that `menagerie verify` and the tests of single verbs bring about.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from ipaddress import IPv4Network

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from bench import injections
from bench.clients import load
from bench.history import Summary, summary, violations
from cluster.spec import Cluster, RoleName
from etcd.members import data_dir
from etcd.templates import unit_name
from operations.access import API_TIMEOUT_S, Access
from operations.status import not_well, read_status
from operations.waiting import TimedOutError, wait_until

BEFORE_S, AFTER_S = 2.0, 2.0
"""Load without a fault, before and after."""
HEALED_S = 180.0
_API_SERVER = "kube-apiserver.service"


@dataclass(frozen=True)
class Victims:
    """Whom a fault may strike. dice: who of several it is."""

    cluster: Cluster
    access: Access
    dice: random.Random

    def members(self, role: RoleName) -> dict[str, str]:
        """Host -> its address."""
        return {each.name: each.address for each in self.access.outputs.etcds[role].members}

    def leader(self, role: RoleName) -> str:
        """Host of the member that leads now."""
        by_address = {address: host for host, address in self.members(role).items()}
        for host in self.members(role):
            told = json.loads(
                injections.do(host, f"/usr/local/sbin/etcdctl-{role}", "endpoint", "status", "-w", "json")
            )
            for each in told:
                if each["Status"]["leader"] == each["Status"]["header"]["member_id"]:
                    return by_address[each["Endpoint"].split("//")[1].split(":")[0]]
        raise LookupError(f"etcd {role} has no leader")

    def follower(self, role: RoleName) -> str:
        leader = self.leader(role)
        return self.dice.choice([host for host in self.members(role) if host != leader])

    def peers(self, role: RoleName, host: str) -> list[str]:
        """Addresses of the other members."""
        return [address for name, address in self.members(role).items() if name != host]

    def api_server(self) -> str:
        return self.dice.choice([each.name for each in self.access.outputs.api_servers])

    def api_servers(self) -> list[str]:
        return [each.name for each in self.access.outputs.api_servers]


@dataclass(frozen=True)
class Fault:
    """One row of the table.

    inject: begins it, and ends it after the block. told: what `status` says meanwhile, a regular expression; "" where it
    is over before anybody could look. writes_go_on: whether clients may notice no more than a moment of it.
    """

    row: str
    name: str
    inject: Callable[[Victims], AbstractContextManager[None]]
    lasts_s: float = 6.0
    told: str = ""
    writes_go_on: bool = True

    def __str__(self) -> str:
        return f"{self.row} {self.name}"


def _quorum_lost(victims: Victims, role: RoleName) -> AbstractContextManager[None]:
    return injections.stopped([*victims.members(role)][:2], unit_name(role))


def _cut_off(victims: Victims, role: RoleName, share: int = 100) -> AbstractContextManager[None]:
    host = victims.leader(role)
    return injections.cut(host, victims.peers(role, host), share)


FAULTS: tuple[Fault, ...] = (
    Fault("F1", "a follower of main is killed", lambda v: injections.killed(v.follower("main"), unit_name("main"))),
    Fault("F2", "the leader of main is killed", lambda v: injections.killed(v.leader("main"), unit_name("main"))),
    Fault("F2", "the leader of main is paused", lambda v: injections.paused(v.leader("main"), unit_name("main"))),
    Fault(
        "F3",
        "main loses its quorum",
        lambda v: _quorum_lost(v, "main"),
        told=r"etcd-main-\d",
        writes_go_on=False,
    ),
    Fault("F4", "the leader of main is cut off from its peers", lambda v: _cut_off(v, "main"), told=r"etcd-main-\d"),
    Fault("F5", "the leader of main loses every second packet", lambda v: _cut_off(v, "main", 50)),
    Fault(
        "F7",
        "the disk of a follower of main is full",
        lambda v: injections.full_disk(v.follower("main"), unit_name("main"), data_dir(v.cluster, "main")),
    ),
    Fault(
        "F8",
        "the disk of main's leader is slow",
        lambda v: injections.slow_disk(v.leader("main"), unit_name("main"), delay_ms=200),
    ),
    Fault(
        "F8",
        "the disk of events' leader is slow",
        lambda v: injections.slow_disk(v.leader("events"), unit_name("events"), delay_ms=1000),
    ),
    Fault(
        "F14",
        "events loses every copy of its data",
        lambda v: injections.wiped([*v.members("events")], unit_name("events"), data_dir(v.cluster, "events")),
    ),
    Fault("F14", "events loses its quorum", lambda v: _quorum_lost(v, "events"), told=r"etcd-events-\d"),
    Fault(
        "F14", "the leader of events is paused", lambda v: injections.paused(v.leader("events"), unit_name("events"))
    ),
    Fault("F15", "an API server is killed", lambda v: injections.killed(v.api_server(), _API_SERVER)),
    Fault("F15", "an API server is paused", lambda v: injections.paused(v.api_server(), _API_SERVER)),
    Fault(
        "F16",
        "all API servers are stopped",
        lambda v: injections.stopped(v.api_servers(), _API_SERVER),
        lasts_s=20.0,
        told="no answer",
        writes_go_on=False,
    ),
    Fault(
        "F16",
        "all API servers are stopped for minutes",
        lambda v: injections.stopped(v.api_servers(), _API_SERVER),
        # A node counts as gone after 50 s without a Lease, and its pods are given up 300 s later (kubernetes.io, "Nodes").
        lasts_s=400.0,
        told="no answer",
        writes_go_on=False,
    ),
)
PAIRABLE = tuple(fault for fault in FAULTS if fault.writes_go_on)
"""Two of these at once must not lose anything; they may stop writes."""


@dataclass(frozen=True)
class Outcome:
    """How it went. wrong: what must hold and did not, nothing where all did. healed_s: from its end until all was well."""

    faults: tuple[Fault, ...]
    load: Summary | None
    healed_s: float
    wrong: tuple[str, ...]

    def __str__(self) -> str:
        name = " and ".join(str(fault) for fault in self.faults)
        return f"{name}: {self.load}; well after {self.healed_s:.0f} s" + "".join(f"\n  WRONG: {w}" for w in self.wrong)


MOMENT_S = 30.0
"""What clients may notice of a fault that writes go on through. An election takes seconds, and so does the load balancer's
verdict; this is what tells a delay from an outage."""


def attempt(faults: Sequence[Fault], cluster: Cluster, access: Access, dice: random.Random) -> Outcome:
    """Put the lab to faults, all at once, under load. The cluster must be well before."""
    victims, wrong = Victims(cluster, access, dice), list[str]()
    before = running_pods(access)
    with load(access) as seen:
        time.sleep(BEFORE_S)
        with ExitStack() as stack:
            for fault in faults:
                stack.enter_context(fault.inject(victims))
            time.sleep(max(fault.lasts_s for fault in faults))
            wrong += [line for fault in faults for line in _untold(fault, cluster, access)]
        healed_s = _heal(cluster, access, wrong)
        time.sleep(AFTER_S)
    wrong += violations(seen.history)
    told = summary(seen.history)
    if len(faults) == 1 and faults[0].writes_go_on and told.longest_gap_s > MOMENT_S:
        wrong.append(f"no write was acknowledged for {told.longest_gap_s:.0f} s")
    return Outcome(tuple(faults), told, healed_s, (*wrong, *given_up(access, before), *shared_addresses(access)))


def _untold(fault: Fault, cluster: Cluster, access: Access) -> list[str]:
    if not fault.told:
        return []
    status = read_status(cluster, access)
    lines = [f"{item.name}: {item.detail}" for item in status.items if not item.ok]
    said = any(re.search(fault.told, line) for line in lines)
    return [] if said else [f"status did not say {fault.told!r} of {fault}, but: {'; '.join(lines) or 'all is well'}"]


def _heal(cluster: Cluster, access: Access, wrong: list[str]) -> float:
    began = time.monotonic()
    try:
        wait_until(lambda: not_well(cluster, access), HEALED_S, lambda _: None, every_s=1.0)
    except TimedOutError as error:
        wrong.append(f"it did not heal: {error}")
    return time.monotonic() - began


def running_pods(access: Access) -> dict[str, str]:
    """UID of each pod that runs -> its namespace and name. Raises what the Kubernetes client raises."""
    listed = client.CoreV1Api(access.api()).list_pod_for_all_namespaces(_request_timeout=API_TIMEOUT_S).items
    return {
        pod.metadata.uid: f"{pod.metadata.namespace}/{pod.metadata.name}"
        for pod in listed
        if pod.status.phase == "Running" and pod.metadata.deletion_timestamp is None
    }


def given_up(access: Access, before: Mapping[str, str]) -> list[str]:
    """Pods that ran and do not any more: no fault of the table is one of a node. Nothing where the API is silent."""
    try:
        now = running_pods(access)
    except (ApiException, urllib3.exceptions.HTTPError):
        return []
    return [f"pod {name} was given up" for uid, name in before.items() if uid not in now]


def shared_addresses(access: Access) -> list[str]:
    """Addresses and ranges that two have at once: of nodes, of nodes' pods, of pods. Nothing where the API is silent."""
    core = client.CoreV1Api(access.api())
    try:
        nodes = core.list_node(_request_timeout=API_TIMEOUT_S).items
        pods = core.list_pod_for_all_namespaces(_request_timeout=API_TIMEOUT_S).items
    except (ApiException, urllib3.exceptions.HTTPError) as error:
        return [f"the API did not answer in the end: {error}"]
    own = [each.address for node in nodes for each in node.status.addresses or () if each.type == "InternalIP"]
    ranges = [IPv4Network(node.spec.pod_cidr) for node in nodes if node.spec.pod_cidr]
    of_pods = [pod.status.pod_ip for pod in pods if pod.status.phase == "Running" and not pod.spec.host_network]
    counts = Counter([*own, *map(str, ranges), *(address for address in of_pods if address)])
    return [f"{address} has {count} owners" for address, count in counts.items() if count > 1]
