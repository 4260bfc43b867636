"""What is broken in a cluster, what would be done about it, and what of it may start. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from email.utils import parsedate_to_datetime
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

from kubernetes import client

from clients.access import API_TIMEOUT_S
from clients.nodes import in_the_region
from clients.waiting import is_ready
from cluster.errors import RefusedError
from cluster.fields import did_you_mean
from cluster.pools import POOL_LABEL
from cluster.repair import Action, Repair
from cluster.spec import Cluster
from operations import removals
from operations.breaker import Decision, Fleet, Limits, Member, decide
from operations.drain import Fate, Mark, Rules, fate, mark_of, name_of, pods_on
from operations.repair import records
from operations.repair.health import SKIP, bad, broken
from operations.repair.records import Record

BY = "repair"
"""Who marks nodes."""


class Step(StrEnum):
    """What is done to a host."""

    GIVE_BACK = "give back"
    """It is well again, and out of service by an earlier run."""
    REBOOT = "reboot"
    POWER_CYCLE = "power cycle"
    REINSTALL = "install anew"
    REPLACE = "replace"
    TICKET = "ticket"


@dataclass(frozen=True)
class Seen:
    """The cluster at one moment."""

    nodes: Mapping[str, client.V1Node]
    fleet: Fleet


@dataclass(frozen=True)
class Case:
    """A host and what is to be done. pods, scratch: how many would be evicted, and of them keep files on the node.

    unmanaged: pods that nothing would make anew: they are waited for until the hard limit. ready: its node's condition.
    """

    host: str
    pool: str
    why: str
    step: Step
    record: Record
    since: float = 0.0
    mark: Mark | None = None
    ready: bool = True
    pods: int = 0
    scratch: int = 0
    unmanaged: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Plan:
    """cases: oldest first, those that an earlier run began before them. tickets: host -> why hands are needed.

    left_out: host -> why it is nobody's to repair.
    """

    seen: Seen
    cases: tuple[Case, ...]
    decision: Decision
    tickets: Mapping[str, str]
    left_out: Mapping[str, str]

    @property
    def allowed(self) -> tuple[Case, ...]:
        return tuple(case for case in self.cases if case.host in self.decision.allowed)


@dataclass(frozen=True)
class Around:
    """What a look needs. api: makes a client. control_plane: says what is not well with it, "" where all is."""

    cluster: Cluster
    api: Callable[[], client.ApiClient]
    control_plane: Callable[[], str]
    limits: Limits


def limits_of(cluster: Cluster) -> Limits:
    """The brakes that the spec sets."""
    repair = cluster.spec.repair
    shares = {name: pool.max_unhealthy or repair.max_unhealthy for name, pool in cluster.spec.pools.items()}
    return Limits(shares, repair.max_removed, repair.window / 1000)


def see(around: Around) -> Seen:
    """The cluster's nodes, and what the breaker knows of them. Time is the API server's: nobody's clock need be right."""
    api = around.api()
    found, _, headers = client.CoreV1Api(api).list_node_with_http_info(_request_timeout=API_TIMEOUT_S)
    now = parsedate_to_datetime(headers["Date"]).timestamp()
    leases = (
        client.CoordinationV1Api(api).list_namespaced_lease("kube-node-lease", _request_timeout=API_TIMEOUT_S).items
    )
    heard = {each.metadata.name: each.spec.renew_time.timestamp() for each in leases if each.spec.renew_time}
    members = []
    places = _places(around.cluster, found.items)
    for node in found.items:
        if (name := node.metadata.name) in places:
            ready = is_ready(node)
            well = ready and not bad(node, around.cluster.spec.repair)
            out = mark_of(node) is not None
            members.append(replace(places[name], ready=ready, well=well, out=out, heard=heard.get(name)))
    past, paused = removals.known(api)
    fleet = Fleet(tuple(members), now, past, around.control_plane(), paused)
    return Seen({node.metadata.name: node for node in found.items}, fleet)


def _places(cluster: Cluster, nodes: Iterable[client.V1Node]) -> dict[str, Member]:
    """Node -> where it is; nodes that are not in the spec are nobody's to repair."""
    listed = list(nodes)
    found = {
        host.name: Member(host.name, pool, site=cluster.spec.pools[pool].site or "", rack=host.rack)
        for pool, host in cluster.host_list()
    }
    region = in_the_region(cluster, listed)
    for node in listed:
        if (name := node.metadata.name) in region:
            found[name] = Member(name, (node.metadata.labels or {}).get(POOL_LABEL, ""))
    return found


def plan(around: Around, limit: Sequence[str] = (), with_bmc: Collection[str] = ()) -> Plan:
    """What is to be done. limit: names of hosts, pools, racks or sites, or patterns. with_bmc: hosts that have one.

    Raises RefusedError for one of `limit` that fits nothing.
    """
    seen = see(around)
    api = around.api()
    known = records.known(api)
    cases, tickets, left_out = [], {}, {}
    for member in limited(seen.fleet.members, limit):
        node, record = seen.nodes[member.name], known.get(member.name, Record())
        mark = mark_of(node)
        case = _case(around.cluster.spec.repair, member, node, record, seen.fleet.now, member.name in with_bmc)
        if record.ticket:
            tickets[member.name] = record.ticket + _well_again(around.cluster, member)
        elif case is None:
            continue
        elif mark and mark.by != BY:
            left_out[member.name] = f"{case.why}; it is out of service by {mark.by}: {mark.why}"
        elif why := (node.metadata.annotations or {}).get(SKIP):
            left_out[member.name] = f"{case.why}; its annotation {SKIP} says: {why}"
        else:
            cases.append(_with_pods(api, case))
    cases.sort(key=lambda case: (case.mark is None, case.since, case.host))
    decision = decide(seen.fleet, [case.host for case in cases], around.limits)
    return Plan(seen, tuple(cases), decision, tickets, left_out)


def limited(members: Sequence[Member], limit: Sequence[str]) -> list[Member]:
    """Those whose name, pool, rack or site fits one of `limit`; all without one."""

    def fits(member: Member, pattern: str) -> bool:
        words = (member.name, member.pool, member.rack, member.site)
        return any(word and fnmatchcase(word, pattern) for word in words)

    for pattern in limit:
        if not any(fits(member, pattern) for member in members):
            near = did_you_mean(pattern, [member.name for member in members])
            raise RefusedError(f"{pattern} fits no node, pool, rack or site{near}", code="unknown-host")
    return [member for member in members if not limit or any(fits(member, pattern) for pattern in limit)]


def _case(
    repair: Repair, member: Member, node: client.V1Node, record: Record, now: float, has_bmc: bool
) -> Case | None:
    mark = mark_of(node)
    own = mark if mark and mark.by == BY else None
    finding = broken(node, repair, now)
    if finding is None:
        # A node that is still unwell, if not for long, is not given back yet.
        if own and (member.well or record.acted):
            return Case(member.name, member.pool, own.why, Step.GIVE_BACK, record, now, own, member.ready)
        return None
    step = step_of(finding.action, record, repair, in_region=not member.site, has_bmc=has_bmc)
    return Case(member.name, member.pool, finding.why, step, record, finding.since, own, member.ready)


def step_of(action: Action, record: Record, repair: Repair, *, in_region: bool, has_bmc: bool) -> Step:
    """What is tried next: each repair that did not help is followed by a stronger one, and the last by a ticket."""
    if record.attempts > repair.retries or action is Action.TICKET:
        return Step.TICKET
    if in_region:
        return Step.REPLACE
    ladder = [Step.REBOOT, *([Step.POWER_CYCLE] if has_bmc else [])]
    first = 1 if action is Action.POWER_CYCLE else 0
    if repair.reinstall and has_bmc and record.attempts and record.attempts == repair.retries:
        return Step.REINSTALL
    return ladder[min(first + record.attempts, len(ladder) - 1)]


def _with_pods(api: client.ApiClient, case: Case) -> Case:
    rules = Rules(kubelet_answers=case.ready)
    pods = pods_on(api, case.host)
    leaving = [pod for pod in pods if fate(pod, rules)[0] in (Fate.LEAVES, Fate.REFUSED)]
    scratch = sum(any(volume.empty_dir for volume in pod.spec.volumes or ()) for pod in leaving)
    lost = tuple(name_of(pod) for pod in leaving if fate(pod, rules)[0] is Fate.REFUSED)
    return replace(case, pods=len(leaving), scratch=scratch, unmanaged=lost)


def _well_again(cluster: Cluster, member: Member) -> str:
    if not member.well:
        return ""
    return f"; its node is well again, give it back: ./menagerie repair {cluster.name} --retry {member.name}"


def worn_off(repair: Repair, seen: Seen, known: Mapping[str, Record]) -> list[str]:
    """Hosts that were repaired, and have been well for so long that their repairs are forgotten."""
    well = {member.name for member in seen.fleet.members if member.well and not member.out}
    period_s = repair.min_healthy_period / 1000
    return [
        host
        for host, record in known.items()
        if record.healed and seen.fleet.now - record.healed >= period_s and (host in well or host not in seen.nodes)
    ]
