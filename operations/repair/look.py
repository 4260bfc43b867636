"""Finds what is broken in a cluster, what to do about it, and which repairs may start. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

from kubernetes import client

from clients.kube import Kube
from clients.nodes import in_the_region, listed, renewals
from clients.waiting import is_ready
from cluster.errors import RefusedError
from cluster.fields import did_you_mean
from cluster.pools import POOL_LABEL
from cluster.repair import Action, Repair
from cluster.spec import Cluster
from operations import removals
from operations.breaker import BrakeDecision, ClusterHealth, Limits, NodeHealth, decide
from operations.drain import DrainMark, PodFate, Rules, fate, mark_of, name_of, pods_on
from operations.repair import records
from operations.repair.health import SKIP, bad, broken
from operations.repair.records import RepairRecord

BY = "repair"
"""The verb in the mark on nodes."""


class RepairStep(StrEnum):
    """A repair step for a host."""

    GIVE_BACK = "give back"
    """It is healthy again, and out of service since an earlier run."""
    REBOOT = "reboot"
    POWER_CYCLE = "power cycle"
    REINSTALL = "install anew"
    REPLACE = "replace"
    TICKET = "ticket"


@dataclass(frozen=True)
class ClusterSnapshot:
    """A snapshot of the cluster."""

    nodes: Mapping[str, client.V1Node]
    fleet: ClusterHealth


@dataclass(frozen=True)
class Case:
    """A host and its next repair step. pods: how many would be evicted; scratch: how many of them have files on the node.

    unmanaged: pods without a controller: the drain waits for them until the hard limit. ready: its node's condition.
    """

    host: str
    pool: str
    why: str
    step: RepairStep
    record: RepairRecord
    since: float = 0.0
    mark: DrainMark | None = None
    ready: bool = True
    pods: int = 0
    scratch: int = 0
    unmanaged: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class RepairPlan:
    """cases: those that an earlier run started, then the others, oldest first. tickets: host -> why a person is needed.

    left_out: host -> why it is not repaired.
    """

    snapshot: ClusterSnapshot
    cases: tuple[Case, ...]
    decision: BrakeDecision
    tickets: Mapping[str, str]
    left_out: Mapping[str, str]

    @property
    def allowed(self) -> tuple[Case, ...]:
        return tuple(case for case in self.cases if case.host in self.decision.allowed)


@dataclass(frozen=True)
class CheckInputs:
    """Inputs of a check. api: creates a client. control_plane: returns what is unhealthy in it, "" if nothing is."""

    cluster: Cluster
    api: Callable[[], client.ApiClient]
    control_plane: Callable[[], str]
    limits: Limits


def limits_of(cluster: Cluster) -> Limits:
    """Return the limits in the spec."""
    repair = cluster.spec.repair
    shares = {name: pool.max_unhealthy or repair.max_unhealthy for name, pool in cluster.spec.pools.items()}
    return Limits(shares, repair.max_removed, repair.window / 1000, f"./menagerie repair {cluster.name} --max-removal")


def see(around: CheckInputs) -> ClusterSnapshot:
    """Read the cluster's nodes, with the breaker's records. Uses the API server's time: other clocks may be wrong."""
    api = around.api()
    nodes = list(listed(api))
    at, leases = Kube(api).snapshot("Lease", "kube-node-lease")
    now = at.timestamp()
    heard = {name: renewed.timestamp() for name, renewed in renewals(leases)}
    members = []
    places = _places(around.cluster, nodes)
    for node in nodes:
        if (name := node.metadata.name) in places:
            ready = is_ready(node)
            well = ready and not bad(node, around.cluster.spec.repair)
            out = mark_of(node) is not None
            members.append(replace(places[name], ready=ready, healthy=well, out=out, lease_at=heard.get(name)))
    past, paused = removals.recorded_removals(api)
    fleet = ClusterHealth(tuple(members), now, past, around.control_plane(), paused)
    return ClusterSnapshot({node.metadata.name: node for node in nodes}, fleet)


def _places(cluster: Cluster, nodes: Iterable[client.V1Node]) -> dict[str, NodeHealth]:
    """Return node -> its place. Nodes that are not in the spec are left out: they are not repaired."""
    listed = list(nodes)
    places = {
        host.name: NodeHealth(host.name, pool, site=cluster.spec.pools[pool].site or "", rack=host.rack)
        for pool, host in cluster.host_list()
    }
    region = in_the_region(cluster, listed)
    for node in listed:
        if (name := node.metadata.name) in region:
            places[name] = NodeHealth(name, (node.metadata.labels or {}).get(POOL_LABEL, ""))
    return places


def plan(around: CheckInputs, limit: Sequence[str] = (), with_bmc: Collection[str] = ()) -> RepairPlan:
    """Plan the repairs. limit: names of hosts, pools, racks or sites, or patterns. with_bmc: hosts with a BMC.

    Raises RefusedError if one of `limit` matches nothing.
    """
    snapshot = see(around)
    api = around.api()
    records_by_host = records.repair_records(api)
    cases, tickets, left_out = [], {}, {}
    for member in limited(snapshot.fleet.members, limit):
        node, record = snapshot.nodes[member.name], records_by_host.get(member.name, RepairRecord())
        mark = mark_of(node)
        case = _case(around.cluster.spec.repair, member, node, record, snapshot.fleet.now, member.name in with_bmc)
        if record.ticket:
            tickets[member.name] = record.ticket + _well_again(around.cluster, member)
        elif case is None:
            continue
        elif mark and mark.by != BY:
            left_out[member.name] = f"{case.why}; it is out of service ({mark.by}: {mark.why})"
        elif why := (node.metadata.annotations or {}).get(SKIP):
            left_out[member.name] = f"{case.why}; its annotation {SKIP} is: {why}"
        else:
            cases.append(_with_pods(api, case))
    cases.sort(key=lambda case: (case.mark is None, case.since, case.host))
    decision = decide(snapshot.fleet, [case.host for case in cases], around.limits)
    return RepairPlan(snapshot, tuple(cases), decision, tickets, left_out)


def limited(members: Sequence[NodeHealth], limit: Sequence[str]) -> list[NodeHealth]:
    """Return the members whose name, pool, rack or site matches one of `limit`; all if it is empty."""

    def fits(member: NodeHealth, pattern: str) -> bool:
        words = (member.name, member.pool, member.rack, member.site)
        return any(word and fnmatchcase(word, pattern) for word in words)

    for pattern in limit:
        if not any(fits(member, pattern) for member in members):
            near = did_you_mean(pattern, [member.name for member in members])
            raise RefusedError(f"{pattern} matches no node, pool, rack or site{near}", code="unknown-host")
    return [member for member in members if not limit or any(fits(member, pattern) for pattern in limit)]


def _case(
    repair: Repair, member: NodeHealth, node: client.V1Node, record: RepairRecord, now: float, has_bmc: bool
) -> Case | None:
    mark = mark_of(node)
    own_mark = mark if mark and mark.by == BY else None
    finding = broken(node, repair, now)
    if finding is None:
        # A node that is unhealthy, even if only recently, is not returned yet.
        if own_mark and (member.healthy or record.acted):
            return Case(
                member.name, member.pool, own_mark.why, RepairStep.GIVE_BACK, record, now, own_mark, member.ready
            )
        return None
    step = step_of(finding.action, record, repair, in_region=not member.site, has_bmc=has_bmc)
    return Case(member.name, member.pool, finding.why, step, record, finding.since, own_mark, member.ready)


def step_of(action: Action, record: RepairRecord, repair: Repair, *, in_region: bool, has_bmc: bool) -> RepairStep:
    """Return the next step: after each repair that did not help a stronger one, after the last one a ticket."""
    if record.attempts > repair.retries or action is Action.TICKET:
        return RepairStep.TICKET
    if in_region:
        return RepairStep.REPLACE
    ladder = [RepairStep.REBOOT, *([RepairStep.POWER_CYCLE] if has_bmc else [])]
    first = 1 if action is Action.POWER_CYCLE else 0
    if repair.reinstall and has_bmc and record.attempts and record.attempts == repair.retries:
        return RepairStep.REINSTALL
    return ladder[min(first + record.attempts, len(ladder) - 1)]


def _with_pods(api: client.ApiClient, case: Case) -> Case:
    rules = Rules(kubelet_answers=case.ready)
    pods = pods_on(api, case.host)
    leaving = [pod for pod in pods if fate(pod, rules)[0] in (PodFate.LEAVES, PodFate.REFUSED)]
    scratch = sum(any(volume.empty_dir for volume in pod.spec.volumes or ()) for pod in leaving)
    lost = tuple(name_of(pod) for pod in leaving if fate(pod, rules)[0] is PodFate.REFUSED)
    return replace(case, pods=len(leaving), scratch=scratch, unmanaged=lost)


def _well_again(cluster: Cluster, member: NodeHealth) -> str:
    if not member.healthy:
        return ""
    return f"; its node is healthy again, return it to service: ./menagerie repair {cluster.name} --retry {member.name}"


def worn_off(repair: Repair, snapshot: ClusterSnapshot, known: Mapping[str, RepairRecord]) -> list[str]:
    """Return repaired hosts that have been healthy for long enough to forget their repairs."""
    well = {member.name for member in snapshot.fleet.members if member.healthy and not member.out}
    period_s = repair.min_healthy_period / 1000
    return [
        host
        for host, record in known.items()
        if record.healed
        and snapshot.fleet.now - record.healed >= period_s
        and (host in well or host not in snapshot.nodes)
    ]
