"""The common brake on automatic removal of nodes: by repairs, the autoscaler, and the machine planner. Pure.

If many nodes are unhealthy at once, they have a common cause, and removing them makes it worse. No removal starts while
the control plane, a site, a rack or too much of a pool is unhealthy. Within a window, only a share of the cluster may be
removed.

Sources: Cluster API, "MachineHealthCheck" (a share of a set of machines, rounded down); OpenAI's kubernetes-ec2-autoscaler
(half of the nodes in a decision); kube-controller-manager, "Rate limits on eviction" of kubernetes.io, "Nodes" (none if all
zones are unhealthy).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from cluster.quantities import Share, format_duration_ms, share_of

REPORTING = 95
"""Percentage of nodes that must report again before anything starts, after all have gone."""
STALE_S = 120.0
"""A kubelet renews its lease every 10 s, and its node is Unknown after 50 s (node-monitor-grace-period)."""
_FEWEST = 2
"""Minimum number of nodes to tell the failure of a rack or site from that of a machine."""
_SHOWN = 5


class BrakeKind(StrEnum):
    """Kind of brake, machine-readable."""

    CONTROL_PLANE = "control-plane"
    STALE = "stale"
    ALL_AT_ONCE = "all-at-once"
    SITE = "site"
    RACK = "rack"
    POOL = "pool"
    WINDOW = "window"


@dataclass(frozen=True)
class NodeHealth:
    """A node's current state.

    ready: its Ready condition. healthy: Ready and without any other problem, however recent. out: taken out of service
    earlier, with a mark. lease_at: Unix time of its newest lease. site, rack: "" in the region.
    """

    name: str
    pool: str
    ready: bool = True
    healthy: bool = True
    out: bool = False
    lease_at: float | None = None
    site: str = ""
    rack: str = ""


@dataclass(frozen=True)
class Removal:
    """A node that was taken out of service. at: Unix time. by: the verb."""

    host: str
    at: float
    by: str = ""


@dataclass(frozen=True)
class Limits:
    """max_unhealthy: pool -> share of it. Percentages are rounded down, possibly to 0.

    override: the command whose option raises max_removed for one run; the share follows it.
    """

    max_unhealthy: Mapping[str, Share]
    max_removed: Share
    window_s: float
    override: str

    def overridden(self, unhealthy: Share | None = None, removed: Share | None = None) -> Limits:
        """Return the limits with an operator's overrides for one run."""
        pools = dict.fromkeys(self.max_unhealthy, unhealthy) if unhealthy else self.max_unhealthy
        return replace(self, max_unhealthy=pools, max_removed=removed or self.max_removed)


@dataclass(frozen=True)
class ClusterHealth:
    """A snapshot of the cluster. now: Unix time, by the API server's clock.

    control_plane: what is unhealthy in it, "" if nothing is. paused: whether an earlier check found that all nodes had gone.
    """

    members: tuple[NodeHealth, ...]
    now: float
    removals: tuple[Removal, ...] = ()
    control_plane: str = ""
    paused: bool = False


@dataclass(frozen=True)
class Brake:
    """Why hosts may not be removed now."""

    kind: BrakeKind
    text: str
    hosts: frozenset[str]


@dataclass(frozen=True)
class BrakeDecision:
    """allowed: in the requested order. paused: to be kept for the next check."""

    allowed: tuple[str, ...]
    brakes: tuple[Brake, ...] = ()
    paused: bool = False

    def why_not(self, host: str) -> str:
        """Return why the host may not be removed, "" if it may."""
        if host in self.allowed:
            return ""
        return next((brake.text for brake in self.brakes if host in brake.hosts), "its removal was not requested")


def decide(fleet: ClusterHealth, requested: Sequence[str], limits: Limits, doing: str = "repair") -> BrakeDecision:
    """Decide which of the requested removals may start. doing: the verb to use in texts."""
    everyone = frozenset(requested)
    whole, paused = _whole(fleet, doing)
    brakes = [Brake(kind, text, everyone) for kind, text in whole]
    if gone := everyone - {member.name for member in fleet.members}:
        brakes.append(Brake(BrakeKind.STALE, f"{_some(sorted(gone))}: no such node.", gone))
    if not whole:
        brakes += _places(fleet, doing)
        brakes += _pools(fleet, limits, doing)
    held = frozenset[str]().union(*(brake.hosts for brake in brakes))
    brakes += _window(fleet, requested, held, limits)
    held = held.union(*(brake.hosts for brake in brakes))
    return BrakeDecision(tuple(host for host in requested if host not in held), tuple(brakes), paused)


def _whole(fleet: ClusterHealth, doing: str) -> tuple[list[tuple[BrakeKind, str]], bool]:
    """Return what blocks every removal, and whether the next check must remember it."""
    brakes: list[tuple[BrakeKind, str]] = []
    if fleet.control_plane:
        text = f"the control plane is unhealthy: {fleet.control_plane}. No {doing} will start: its view of nodes can't be trusted."
        brakes.append((BrakeKind.CONTROL_PLANE, text))
    in_service = [member for member in fleet.members if not member.out]
    ready = [member for member in in_service if member.ready]
    silent = [member for member in ready if member.lease_at is None or fleet.now - member.lease_at > STALE_S]
    if len(silent) * 2 > len(ready):
        text = (
            f"{len(silent):,} of {len(ready):,} Ready nodes have not renewed their lease for {STALE_S:.0f} s: the API's state "
            f"of nodes is stale, or the clocks differ. No {doing} will start."
        )
        brakes.append((BrakeKind.STALE, text))
    if in_service and not ready:
        text = (
            f"all {len(in_service):,} nodes went NotReady together; treating this as a control plane fault. Scale-down and "
            f"{doing} are paused until {REPORTING} % report."
        )
        return [*brakes, (BrakeKind.ALL_AT_ONCE, text)], True
    paused = fleet.paused and len(ready) * 100 < REPORTING * len(in_service)
    if paused:
        text = (
            f"{len(ready):,} of {len(in_service):,} nodes report again after all had gone. No {doing} will start until "
            f"{REPORTING} % do."
        )
        brakes.append((BrakeKind.ALL_AT_ONCE, text))
    return brakes, paused


def _places(fleet: ClusterHealth, doing: str) -> Iterator[Brake]:
    """Yield brakes for sites and racks where all nodes are NotReady: a tunnel or a switch failed, not the machines."""
    cut: set[str] = set()
    for (site,), silent in _gone(fleet, lambda member: (member.site,)):
        cut.add(site)
        text = (
            f"site {site} is cut off or has no power: all {len(silent):,} nodes are NotReady, but their pods may be running. No "
            f"{doing} will start there; check its tunnels, its power and its network."
        )
        yield Brake(BrakeKind.SITE, text, frozenset(member.name for member in fleet.members if member.site == site))
    for (site, rack), silent in _gone(fleet, lambda member: (member.site, member.rack)):
        if site not in cut:
            text = (
                f"all {len(silent):,} nodes of rack {rack} are NotReady. No {doing} will start there; check the rack's switch and "
                "power."
            )
            hosts = frozenset(member.name for member in fleet.members if (member.site, member.rack) == (site, rack))
            yield Brake(BrakeKind.RACK, text, hosts)


def _gone(
    fleet: ClusterHealth, place: Callable[[NodeHealth], tuple[str, ...]]
) -> Iterator[tuple[tuple[str, ...], list[NodeHealth]]]:
    """Yield places at sites with several nodes in service, none of them Ready."""
    by_place = defaultdict[tuple[str, ...], list[NodeHealth]](list)
    for member in fleet.members:
        if member.site and not member.out:
            by_place[place(member)].append(member)
    for where, members in by_place.items():
        if len(members) >= _FEWEST and not any(member.ready for member in members):
            yield where, members


def _pools(fleet: ClusterHealth, limits: Limits, doing: str) -> Iterator[Brake]:
    """Yield brakes for pools with too many unhealthy nodes, and for nodes that are in no pool."""
    unknown = frozenset(member.name for member in fleet.members if member.pool not in limits.max_unhealthy)
    if unknown:
        yield Brake(
            BrakeKind.POOL,
            f"{_some(sorted(unknown))}: in no pool of the spec, so no limit applies to their {doing}.",
            unknown,
        )
    for pool, share in limits.max_unhealthy.items():
        members = [member for member in fleet.members if member.pool == pool]
        unhealthy = [member for member in members if not member.healthy]
        if len(unhealthy) <= share_of(share, len(members), least=0):
            continue
        limit = f"{share[:-1]} %" if share.endswith("%") else f"{share} nodes"
        text = (
            f"{len(unhealthy):,} of {len(members):,} nodes in pool {pool} are unhealthy ({_percent(unhealthy, members)} %, limit "
            f"{limit}). No {doing} will start; {_where(unhealthy)}."
        )
        yield Brake(BrakeKind.POOL, text, frozenset(member.name for member in members))


def _where(unhealthy: Sequence[NodeHealth]) -> str:
    """Return where to look for the common cause."""
    racks = {(member.site, member.rack) for member in unhealthy}
    sites = {member.site for member in unhealthy}
    if len(unhealthy) > 1 and len(racks) == 1 and unhealthy[0].rack:
        return f"check the rack's switch and power ({unhealthy[0].rack})"
    if len(unhealthy) > 1 and len(sites) == 1 and unhealthy[0].site:
        return f"check what they share at site {unhealthy[0].site}"
    return "check what they have in common"


def _window(fleet: ClusterHealth, requested: Sequence[str], held: Collection[str], limits: Limits) -> Iterator[Brake]:
    """Yield brakes for hosts beyond the share that may be removed within the window. Hosts that are out already
    don't count."""
    out = {member.name for member in fleet.members if member.out}
    new = [host for host in requested if host not in out]
    count, most = len(fleet.members), share_of(limits.max_removed, len(fleet.members), least=0)
    if len(new) > most:
        text = (
            f"refusing to remove {len(new):,} of {count:,} nodes ({_percent(new, fleet.members)} %); the limit is "
            f"{_limit(limits)} per decision. To override it for one run: {limits.override} {enough(len(new), count)}"
        )
        yield Brake(BrakeKind.WINDOW, text, frozenset(new))
        return
    recent = [member for member in fleet.removals if member.at > fleet.now - limits.window_s]
    free = [host for host in new if host not in held]
    room = max(most - len(recent), 0)
    if waiting := free[room:]:
        window = format_duration_ms(int(limits.window_s * 1000))
        text = (
            f"{len(recent):,} of {count:,} nodes were removed within {window}; the limit is {_limit(limits)}. These wait: "
            f"{_some(waiting)}. To override it for one run: {limits.override} {enough(len(recent) + len(free), count)}"
        )
        yield Brake(BrakeKind.WINDOW, text, frozenset(waiting))


def _limit(limits: Limits) -> str:
    share = limits.max_removed
    return f"{share[:-1]} %" if share.endswith("%") else f"{share} nodes"


def enough(number: int, count: int) -> str:
    """Return the share that would allow this many removals, rounded up to tens of percent."""
    return f"{min(-(-number * 10 // max(count, 1)) * 10, 100)}%"


def _percent(part: Collection[object], whole: Collection[object]) -> int:
    return len(part) * 100 // max(len(whole), 1)


def _some(hosts: Iterable[str]) -> str:
    listed = list(hosts)
    return ", ".join(listed[:_SHOWN]) + (" …" if len(listed) > _SHOWN else "")
