"""The table of faults that the lab is put to, one at a time or two at once, and what must hold of each.

Rows F1 to F30 are those of `tests/faults/README.md`, which also says where rows are tried that are not here: faults of a
kind that no machine is needed for, and those that `menagerie verify` and the tests of single verbs bring about.
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
from operations.status import Status, not_well, read_status
from tests.bench import injections
from tests.bench.aftermath import given_up, running_pods, shared_addresses
from tests.bench.clients import load
from tests.bench.history import Summary, summary, violations

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

    inject: begins it, and ends it after the block, which begins once its effect was seen. told: what `status` says meanwhile, a
    regular expression for "<item>: <detail>" of what is not ok; or untold: why it says nothing.
    writes_go_on: whether clients may notice no more than a moment of it.
    """

    row: str
    name: str
    inject: Callable[[Victims], AbstractContextManager[None]]
    lasts_s: float = 6.0
    told: str = ""
    untold: str = ""
    writes_go_on: bool = True

    def __post_init__(self) -> None:
        if bool(self.told) is bool(self.untold):
            raise ValueError(f"{self.name}: either what status says, or why it says nothing")

    def __str__(self) -> str:
        return f"{self.row} {self.name}"


def _quorum_lost(victims: Victims, role: RoleName) -> AbstractContextManager[None]:
    return injections.stopped([*victims.members(role)][:2], unit_name(role))


def _cut_off(victims: Victims, role: RoleName, share: int = 100) -> AbstractContextManager[None]:
    host = victims.leader(role)
    return injections.cut(host, victims.peers(role, host), share)


def _slow(victims: Victims, role: RoleName, delay_ms: int) -> AbstractContextManager[None]:
    return injections.slow_disk(victims.leader(role), role, metrics_port(victims.cluster, role), delay_ms)


_RESTARTED = "systemd has started it again after two seconds, which may be less than status takes"
_SLOW = (
    "it is no fault to status: it shows the 99th percentile of all fsyncs since the member started, and never as not ok"
)

FAULTS: tuple[Fault, ...] = (
    Fault(
        "F1",
        "a follower of main is killed",
        lambda v: injections.killed(v.follower("main"), unit_name("main")),
        untold=_RESTARTED,
    ),
    Fault(
        "F2",
        "the leader of main is killed",
        lambda v: injections.killed(v.leader("main"), unit_name("main")),
        untold=_RESTARTED,
    ),
    Fault(
        "F2",
        "the leader of main is paused",
        lambda v: injections.paused(v.leader("main"), unit_name("main")),
        told=r"etcd-main-\d",
    ),
    Fault(
        "F3",
        "main loses its quorum",
        lambda v: _quorum_lost(v, "main"),
        told=r"etcd-main-\d",
        writes_go_on=False,
    ),
    Fault("F4", "the leader of main is cut off from its peers", lambda v: _cut_off(v, "main"), told=r"etcd-main-\d"),
    Fault(
        "F5",
        "the leader of main loses every second packet",
        lambda v: _cut_off(v, "main", 50),
        untold="members answer whoever asks them, and TCP sends again what their peers lose",
    ),
    Fault(
        "F7",
        "the disk of a follower of main is full",
        lambda v: injections.full_disk(v.follower("main"), unit_name("main"), data_dir(v.cluster, "main")),
        told=r"etcd-main-\d|quorum of main",
    ),
    Fault("F8", "the disk of main's leader is slow", lambda v: _slow(v, "main", delay_ms=200), untold=_SLOW),
    Fault("F8", "the disk of events' leader is slow", lambda v: _slow(v, "events", delay_ms=1000), untold=_SLOW),
    Fault(
        "F14",
        "events loses every copy of its data",
        lambda v: injections.wiped([*v.members("events")], unit_name("events"), data_dir(v.cluster, "events")),
        untold="its members are well again within seconds; that they hold nothing is no fault to status",
    ),
    Fault("F14", "events loses its quorum", lambda v: _quorum_lost(v, "events"), told=r"etcd-events-\d"),
    Fault(
        "F14",
        "the leader of events is paused",
        lambda v: injections.paused(v.leader("events"), unit_name("events")),
        told=r"etcd-events-\d",
    ),
    Fault(
        "F15",
        "an API server is killed",
        lambda v: injections.killed(v.api_server(), _API_SERVER),
        untold=_RESTARTED,
    ),
    Fault(
        "F15",
        "an API server is paused",
        lambda v: injections.paused(v.api_server(), _API_SERVER),
        told="load balancer says DOWN",
    ),
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
"""Two of these at once must not lose anything; they may stop writes for as long as they last."""


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


TOLD_S = 30.0
"""How long a fault lasts for `status` to say what it is, where it has not said so before: one look takes up to ten seconds."""


def attempt(faults: Sequence[Fault], cluster: Cluster, access: Access, dice: random.Random) -> Outcome:
    """Put the lab to faults, all at once, under load. The cluster must be well before."""
    victims, wrong = Victims(cluster, access, dice), list[str]()
    before = running_pods(access)
    with load(access) as seen:
        time.sleep(BEFORE_S)
        began = time.monotonic()
        with ExitStack() as stack:
            for fault in faults:
                stack.enter_context(fault.inject(victims))
            until = time.monotonic() + max(fault.lasts_s for fault in faults)
            wrong += untold(faults, lambda: read_status(cluster, access))
            time.sleep(max(until - time.monotonic(), 0.0))
        lasted_s = time.monotonic() - began
        healed_s = _heal(cluster, access, wrong)
        time.sleep(AFTER_S)
    wrong += violations(seen.history)
    told = summary(seen.history)
    wrong += too_long_silent(faults, told, lasted_s)
    return Outcome(tuple(faults), told, healed_s, (*wrong, *given_up(access, before), *shared_addresses(access)))


def too_long_silent(faults: Sequence[Fault], load: Summary, lasted_s: float) -> list[str]:
    """Whether clients were without writes for longer than a moment; of two faults at once, than a moment after both."""
    if not all(fault.writes_go_on for fault in faults):
        return []
    most_s = MOMENT_S + (lasted_s if len(faults) > 1 else 0.0)
    if load.longest_gap_s <= most_s:
        return []
    return [f"no write was acknowledged for {load.longest_gap_s:.0f} s, of {most_s:.0f} s at most"]


def untold(faults: Sequence[Fault], look: Callable[[], Status], within_s: float = TOLD_S) -> list[str]:
    """What `status` should have said of the faults and did not, however often it was asked."""
    left, lines = {fault: fault.told for fault in faults if fault.told}, list[str]()

    def missing() -> str:
        lines[:] = [f"{item.name}: {item.detail}" for item in look().wrong]
        for fault, told in tuple(left.items()):
            if any(re.search(told, line) for line in lines):
                del left[fault]
        return ", ".join(map(str, left))

    with suppress(TimedOutError):
        if left:
            wait_until(missing, within_s, lambda _: None)
    said = "; ".join(lines) or "all is well"
    return [f"status did not say {told!r} of {fault}, but at last: {said}" for fault, told in left.items()]


def _heal(cluster: Cluster, access: Access, wrong: list[str]) -> float:
    began = time.monotonic()
    try:
        wait_until(lambda: not_well(cluster, access), HEALED_S, lambda _: None, every_s=1.0)
    except TimedOutError as error:
        wrong.append(f"it did not heal: {error}")
    return time.monotonic() - began
