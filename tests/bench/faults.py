"""The table of faults that are injected into the lab, one at a time or in pairs, and what must hold for each.

Rows F1 to F30 are those of `tests/faults/README.md`. It also says where the other rows are tested: faults that need no
machine, and faults that `menagerie verify` and the tests of single verbs inject.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass

from clients.access import Access
from clients.waiting import wait_until
from cluster.errors import TimedOutError
from cluster.spec import Cluster, RoleName
from etcd.members import data_dir, metrics_port
from etcd.templates import unit_name
from operations.status import Status
from operations.status.read import read_status, unhealthy_parts
from tests.bench import injections
from tests.bench.aftermath import lost_pods, running_pods, shared_addresses
from tests.bench.clients import load
from tests.bench.history import Summary, summary, violations

BEFORE_S, AFTER_S = 2.0, 2.0
"""Seconds of load without a fault, before and after."""
HEALED_S = 180.0
_API_SERVER = "kube-apiserver.service"


@dataclass(frozen=True)
class Victims:
    """Possible targets of a fault. dice: chooses among several."""

    cluster: Cluster
    access: Access
    dice: random.Random

    def members(self, role: RoleName) -> dict[str, str]:
        """Return host -> address of an etcd's members."""
        return {each.name: each.address for each in self.access.outputs.etcds[role].members}

    def leader(self, role: RoleName) -> str:
        """Return the host of the current leader."""
        by_address = {address: host for host, address in self.members(role).items()}
        for host in self.members(role):
            statuses = json.loads(
                injections.do(host, f"/usr/local/sbin/etcdctl-{role}", "endpoint", "status", "-w", "json")
            )
            for status in statuses:
                if status["Status"]["leader"] == status["Status"]["header"]["member_id"]:
                    return by_address[status["Endpoint"].split("//")[1].split(":")[0]]
        raise LookupError(f"etcd {role} has no leader")

    def follower(self, role: RoleName) -> str:
        leader = self.leader(role)
        return self.dice.choice([host for host in self.members(role) if host != leader])

    def peers(self, role: RoleName, host: str) -> list[str]:
        """Return the addresses of the other members."""
        return [address for name, address in self.members(role).items() if name != host]

    def api_server(self) -> str:
        return self.dice.choice([each.name for each in self.access.outputs.api_servers])

    def api_servers(self) -> list[str]:
        return [each.name for each in self.access.outputs.api_servers]


@dataclass(frozen=True)
class Fault:
    """One row of the table.

    inject: a context manager that starts the fault, enters its block when the effect shows, and ends the fault afterwards.
    status_says: what `status` reports meanwhile, a regular expression for "<item>: <detail>" of an item that is not ok.
    why_silent: why `status` reports nothing. Exactly one of the two is given.
    writes_go_on: whether clients may notice the fault for at most a moment.
    """

    row: str
    name: str
    inject: Callable[[Victims], AbstractContextManager[None]]
    lasts_s: float = 6.0
    status_says: str = ""
    why_silent: str = ""
    writes_go_on: bool = True

    def __post_init__(self) -> None:
        if bool(self.status_says) is bool(self.why_silent):
            raise ValueError(f"{self.name}: give either what status says, or why it says nothing")

    def __str__(self) -> str:
        return f"{self.row} {self.name}"


def _quorum_lost(victims: Victims, role: RoleName) -> AbstractContextManager[None]:
    return injections.stopped([*victims.members(role)][:2], unit_name(role))


def _cut_off(victims: Victims, role: RoleName, share: int = 100) -> AbstractContextManager[None]:
    host = victims.leader(role)
    return injections.cut(host, victims.peers(role, host), share)


def _slow(victims: Victims, role: RoleName, delay_ms: int) -> AbstractContextManager[None]:
    return injections.slow_disk(victims.leader(role), role, metrics_port(victims.cluster, role), delay_ms)


_RESTARTED = "systemd restarts it after two seconds, which may be less than status takes"
_SLOW = "status shows the 99th percentile of all fsyncs since the member started, and never as not ok"

FAULTS: tuple[Fault, ...] = (
    Fault(
        "F1",
        "a follower of main is killed",
        lambda v: injections.killed(v.follower("main"), unit_name("main")),
        why_silent=_RESTARTED,
    ),
    Fault(
        "F2",
        "the leader of main is killed",
        lambda v: injections.killed(v.leader("main"), unit_name("main")),
        why_silent=_RESTARTED,
    ),
    Fault(
        "F2",
        "the leader of main is paused",
        lambda v: injections.paused(v.leader("main"), unit_name("main")),
        status_says=r"etcd-main-\d",
    ),
    Fault(
        "F3",
        "main loses its quorum",
        lambda v: _quorum_lost(v, "main"),
        status_says=r"etcd-main-\d",
        writes_go_on=False,
    ),
    Fault(
        "F4", "the leader of main is cut off from its peers", lambda v: _cut_off(v, "main"), status_says=r"etcd-main-\d"
    ),
    Fault(
        "F5",
        "the leader of main loses every second packet",
        lambda v: _cut_off(v, "main", 50),
        why_silent="members still answer their clients, and TCP resends what their peers lose",
    ),
    Fault(
        "F7",
        "the disk of a follower of main is full",
        lambda v: injections.full_disk(v.follower("main"), unit_name("main"), data_dir(v.cluster, "main")),
        status_says=r"etcd-main-\d|quorum of main",
    ),
    Fault("F8", "the disk of main's leader is slow", lambda v: _slow(v, "main", delay_ms=200), why_silent=_SLOW),
    Fault("F8", "the disk of events' leader is slow", lambda v: _slow(v, "events", delay_ms=1000), why_silent=_SLOW),
    Fault(
        "F14",
        "events loses every copy of its data",
        lambda v: injections.wiped([*v.members("events")], unit_name("events"), data_dir(v.cluster, "events")),
        why_silent="its members are healthy again within seconds, and status does not mind that they hold nothing",
    ),
    Fault("F14", "events loses its quorum", lambda v: _quorum_lost(v, "events"), status_says=r"etcd-events-\d"),
    Fault(
        "F14",
        "the leader of events is paused",
        lambda v: injections.paused(v.leader("events"), unit_name("events")),
        status_says=r"etcd-events-\d",
    ),
    Fault(
        "F15",
        "an API server is killed",
        lambda v: injections.killed(v.api_server(), _API_SERVER),
        why_silent=_RESTARTED,
    ),
    Fault(
        "F15",
        "an API server is paused",
        lambda v: injections.paused(v.api_server(), _API_SERVER),
        status_says="load balancer says DOWN",
    ),
    Fault(
        "F16",
        "all API servers are stopped",
        lambda v: injections.stopped(v.api_servers(), _API_SERVER),
        lasts_s=20.0,
        status_says="no answer",
        writes_go_on=False,
    ),
    Fault(
        "F16",
        "all API servers are stopped for minutes",
        lambda v: injections.stopped(v.api_servers(), _API_SERVER),
        # A node is unreachable after 50 s without a Lease, and its pods are evicted 300 s later (kubernetes.io, "Nodes").
        lasts_s=400.0,
        status_says="no answer",
        writes_go_on=False,
    ),
)
PAIRABLE = tuple(fault for fault in FAULTS if fault.writes_go_on)
"""Two of these at once must not lose anything, but may stop writes while they last."""


@dataclass(frozen=True)
class Outcome:
    """Result of an attempt. wrong: what must hold and did not. healed_s: seconds from the end until all was healthy."""

    faults: tuple[Fault, ...]
    load: Summary | None
    healed_s: float
    wrong: tuple[str, ...]

    def __str__(self) -> str:
        name = " and ".join(str(fault) for fault in self.faults)
        return f"{name}: {self.load}; healthy after {self.healed_s:.0f} s" + "".join(
            f"\n  WRONG: {w}" for w in self.wrong
        )


MOMENT_S = 30.0
"""How long clients may go without writes in a fault with `writes_go_on`. An election takes seconds, and so does the load
balancer's verdict. A longer gap is an outage, not a delay."""


STATUS_S = 30.0
"""How long a fault lasts at most until `status` reports it. One status takes up to ten seconds."""


def attempt(faults: Sequence[Fault], cluster: Cluster, access: Access, dice: random.Random) -> Outcome:
    """Inject faults into the lab, all at once, under load. The cluster must be healthy before."""
    victims, wrong = Victims(cluster, access, dice), list[str]()
    before = running_pods(access)
    with load(access) as clients:
        time.sleep(BEFORE_S)
        began = time.monotonic()
        with ExitStack() as stack:
            for fault in faults:
                stack.enter_context(fault.inject(victims))
            end = time.monotonic() + max(fault.lasts_s for fault in faults)
            wrong += unreported(faults, lambda: read_status(cluster, access))
            time.sleep(max(end - time.monotonic(), 0.0))
        lasted_s = time.monotonic() - began
        healed_s = _heal(cluster, access, wrong)
        time.sleep(AFTER_S)
    wrong += violations(clients.history)
    results = summary(clients.history)
    wrong += write_gaps(faults, results, lasted_s)
    return Outcome(tuple(faults), results, healed_s, (*wrong, *lost_pods(access, before), *shared_addresses(access)))


def write_gaps(faults: Sequence[Fault], load: Summary, lasted_s: float) -> list[str]:
    """List gaps without writes longer than a moment; for two faults at once, longer than a moment after both."""
    if not all(fault.writes_go_on for fault in faults):
        return []
    most_s = MOMENT_S + (lasted_s if len(faults) > 1 else 0.0)
    if load.longest_gap_s <= most_s:
        return []
    return [f"no write was acknowledged for {load.longest_gap_s:.0f} s; {most_s:.0f} s are allowed"]


def unreported(faults: Sequence[Fault], look: Callable[[], Status], within_s: float = STATUS_S) -> list[str]:
    """List what `status` should have reported about the faults and never did. look: returns the status."""
    left, lines = {fault: fault.status_says for fault in faults if fault.status_says}, list[str]()

    def missing() -> str:
        lines[:] = [f"{item.name}: {item.detail}" for item in look().wrong]
        for fault, expected in tuple(left.items()):
            if any(re.search(expected, line) for line in lines):
                del left[fault]
        return ", ".join(map(str, left))

    with suppress(TimedOutError):
        if left:
            wait_until(missing, within_s, lambda _: None)
    last = "; ".join(lines) or "all is healthy"
    return [
        f"status did not report {expected!r} for {fault}; its last report: {last}" for fault, expected in left.items()
    ]


def _heal(cluster: Cluster, access: Access, wrong: list[str]) -> float:
    began = time.monotonic()
    try:
        wait_until(lambda: unhealthy_parts(cluster, access), HEALED_S, lambda _: None, every_s=1.0)
    except TimedOutError as error:
        wrong.append(f"the cluster did not recover: {error}")
    return time.monotonic() - began
