"""The one brake on nodes that are taken out of service by themselves: by repairs, an autoscaler, a plan of machines. Pure.

Many nodes that are unwell at once have one cause, and taking them out makes it worse. So nothing starts while the control
plane, a site, a rack or too much of a pool is unwell, and never more than a share of the cluster within a window.

Sources: Cluster API, "MachineHealthCheck" (a share of a set of machines, rounded down); OpenAI's kubernetes-ec2-autoscaler
(half of the nodes in a decision); kube-controller-manager, "Rate limits on eviction" of kubernetes.io, "Nodes" (none where all
zones are unhealthy).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from cluster.quantities import Share, format_duration_ms, share_of

REPORTING = 95
"""Percent of the nodes that must report again, once none did, before anything starts."""
STALE_S = 120.0
"""A kubelet renews its lease every 10 s, and its node is Unknown after 50 s (node-monitor-grace-period)."""
_FEWEST = 2
"""Nodes of a rack or a site that tell its failure from that of a machine."""
_SHOWN = 5


class Kind(StrEnum):
    """What brakes, for machines."""

    CONTROL_PLANE = "control-plane"
    STALE = "stale"
    ALL_AT_ONCE = "all-at-once"
    SITE = "site"
    RACK = "rack"
    POOL = "pool"
    WINDOW = "window"


@dataclass(frozen=True)
class Member:
    """A node as it is now.

    ready: its Ready condition. well: Ready, and nothing else is wrong with it, for however short a time. out: taken out of
    service before, under a mark. heard: Unix time of its newest lease. site, rack: "" in the region.
    """

    name: str
    pool: str
    ready: bool = True
    well: bool = True
    out: bool = False
    heard: float | None = None
    site: str = ""
    rack: str = ""


@dataclass(frozen=True)
class Removal:
    """A node that was taken out of service. at: Unix time. by: a verb."""

    host: str
    at: float
    by: str = ""


@dataclass(frozen=True)
class Limits:
    """max_unhealthy: pool -> share of it. What is no number is rounded down; there is no least."""

    max_unhealthy: Mapping[str, Share]
    max_removed: Share
    window_s: float

    def overridden(self, unhealthy: Share | None = None, removed: Share | None = None) -> Limits:
        """With what an operator allows for one run in their place."""
        pools = dict.fromkeys(self.max_unhealthy, unhealthy) if unhealthy else self.max_unhealthy
        return replace(self, max_unhealthy=pools, max_removed=removed or self.max_removed)


@dataclass(frozen=True)
class Fleet:
    """What is known of the cluster at one moment. now: Unix time, by the API server's clock.

    control_plane: what is not well with it, "" where all is. paused: whether an earlier look found that all had gone.
    """

    members: tuple[Member, ...]
    now: float
    removals: tuple[Removal, ...] = ()
    control_plane: str = ""
    paused: bool = False


@dataclass(frozen=True)
class Brake:
    """Why hosts may not be taken out now."""

    kind: Kind
    text: str
    hosts: frozenset[str]


@dataclass(frozen=True)
class Decision:
    """allowed: in the order in which they were wanted. paused: to be kept for the next look."""

    allowed: tuple[str, ...]
    brakes: tuple[Brake, ...] = ()
    paused: bool = False

    def why_not(self, host: str) -> str:
        """Why the host may not be taken out, "" where it may."""
        if host in self.allowed:
            return ""
        return next((brake.text for brake in self.brakes if host in brake.hosts), "it was not asked for")


def decide(fleet: Fleet, wanted: Sequence[str], limits: Limits, doing: str = "repair") -> Decision:
    """Which of the wanted removals may start. doing: what they are for, in the texts."""
    everyone = frozenset(wanted)
    whole, paused = _whole(fleet, doing)
    brakes = [Brake(kind, text, everyone) for kind, text in whole]
    if gone := everyone - {each.name for each in fleet.members}:
        brakes.append(Brake(Kind.STALE, f"{_some(sorted(gone))}: no such node.", gone))
    if not whole:
        brakes += _places(fleet, doing)
        brakes += _pools(fleet, limits, doing)
    held = frozenset[str]().union(*(brake.hosts for brake in brakes))
    brakes += _window(fleet, wanted, held, limits)
    held = held.union(*(brake.hosts for brake in brakes))
    return Decision(tuple(host for host in wanted if host not in held), tuple(brakes), paused)


def _whole(fleet: Fleet, doing: str) -> tuple[list[tuple[Kind, str]], bool]:
    """What stands against every removal, and whether that is remembered."""
    found: list[tuple[Kind, str]] = []
    if fleet.control_plane:
        text = (
            f"the control plane is not well: {fleet.control_plane}. No {doing} will start: nodes can't be judged by it."
        )
        found.append((Kind.CONTROL_PLANE, text))
    counted = [each for each in fleet.members if not each.out]
    ready = [each for each in counted if each.ready]
    silent = [each for each in ready if each.heard is None or fleet.now - each.heard > STALE_S]
    if len(silent) * 2 > len(ready):
        text = (
            f"{len(silent):,} of {len(ready):,} Ready nodes have not renewed their lease for {STALE_S:.0f} s, so what the API "
            f"says of nodes is old, or the clocks differ. No {doing} will start."
        )
        found.append((Kind.STALE, text))
    if counted and not ready:
        text = (
            f"all {len(counted):,} nodes went NotReady together; treating this as a control plane fault. Scale-down and "
            f"{doing} are paused until {REPORTING} % report."
        )
        return [*found, (Kind.ALL_AT_ONCE, text)], True
    paused = fleet.paused and len(ready) * 100 < REPORTING * len(counted)
    if paused:
        text = (
            f"{len(ready):,} of {len(counted):,} nodes report again after all had gone. No {doing} will start until "
            f"{REPORTING} % do."
        )
        found.append((Kind.ALL_AT_ONCE, text))
    return found, paused


def _places(fleet: Fleet, doing: str) -> Iterator[Brake]:
    """Sites, and racks of other sites, whose nodes are all silent: a tunnel or a switch, and no machine."""
    cut: set[str] = set()
    for (site,), silent in _gone(fleet, lambda each: (each.site,)):
        cut.add(site)
        text = (
            f"site {site} is cut off, or has no power: all {len(silent):,} nodes are NotReady; their pods may be running. No "
            f"{doing} will start there; look at its tunnels, its power and its network."
        )
        yield Brake(Kind.SITE, text, frozenset(each.name for each in fleet.members if each.site == site))
    for (site, rack), silent in _gone(fleet, lambda each: (each.site, each.rack)):
        if site not in cut:
            text = (
                f"all {len(silent):,} nodes of rack {rack} are NotReady. No {doing} will start there; look at the rack's switch or "
                "power."
            )
            there = frozenset(each.name for each in fleet.members if (each.site, each.rack) == (site, rack))
            yield Brake(Kind.RACK, text, there)


def _gone(fleet: Fleet, place: Callable[[Member], tuple[str, ...]]) -> Iterator[tuple[tuple[str, ...], list[Member]]]:
    """Places at sites that have several nodes in service, and none of them Ready."""
    by_place = defaultdict[tuple[str, ...], list[Member]](list)
    for each in fleet.members:
        if each.site and not each.out:
            by_place[place(each)].append(each)
    for where, members in by_place.items():
        if len(members) >= _FEWEST and not any(each.ready for each in members):
            yield where, members


def _pools(fleet: Fleet, limits: Limits, doing: str) -> Iterator[Brake]:
    """Pools of which more is unwell than may be; what is in none is nobody's to take out."""
    unknown = frozenset(each.name for each in fleet.members if each.pool not in limits.max_unhealthy)
    if unknown:
        yield Brake(
            Kind.POOL, f"{_some(sorted(unknown))}: of no pool of the spec, so nothing limits their {doing}.", unknown
        )
    for pool, share in limits.max_unhealthy.items():
        members = [each for each in fleet.members if each.pool == pool]
        unwell = [each for each in members if not each.well]
        if len(unwell) <= share_of(share, len(members), least=0):
            continue
        limit = f"{share[:-1]} %" if share.endswith("%") else f"{share} nodes"
        text = (
            f"{len(unwell):,} of {len(members):,} nodes in pool {pool} are unhealthy ({_percent(unwell, members)} %, limit "
            f"{limit}). No {doing} will start; {_where(unwell)}."
        )
        yield Brake(Kind.POOL, text, frozenset(each.name for each in members))


def _where(unwell: Sequence[Member]) -> str:
    """Where to look for what they have in common."""
    racks = {(each.site, each.rack) for each in unwell}
    sites = {each.site for each in unwell}
    if len(unwell) > 1 and len(racks) == 1 and unwell[0].rack:
        return f"look at the rack's switch or power ({unwell[0].rack})"
    if len(unwell) > 1 and len(sites) == 1 and unwell[0].site:
        return f"look at what they share in site {unwell[0].site}"
    return "look at what they have in common"


def _window(fleet: Fleet, wanted: Sequence[str], held: Collection[str], limits: Limits) -> Iterator[Brake]:
    """Hosts beyond the share of the cluster that may go within the window; those that are out already take no room."""
    out = {each.name for each in fleet.members if each.out}
    new = [host for host in wanted if host not in out]
    count, most = len(fleet.members), share_of(limits.max_removed, len(fleet.members), least=0)
    if len(new) > most:
        text = (
            f"refusing to remove {len(new):,} of {count:,} nodes ({_percent(new, fleet.members)} %); the limit is "
            f"{_limit(limits)} per decision. Override: --max-removal {_enough(len(new), count)}"
        )
        yield Brake(Kind.WINDOW, text, frozenset(new))
        return
    recent = [each for each in fleet.removals if each.at > fleet.now - limits.window_s]
    free = [host for host in new if host not in held]
    room = max(most - len(recent), 0)
    if late := free[room:]:
        window = format_duration_ms(int(limits.window_s * 1000))
        text = (
            f"{len(recent):,} of {count:,} nodes were taken out within {window}, and the limit is {_limit(limits)}; these wait: "
            f"{_some(late)}. Override: --max-removal {_enough(len(recent) + len(free), count)}"
        )
        yield Brake(Kind.WINDOW, text, frozenset(late))


def _limit(limits: Limits) -> str:
    share = limits.max_removed
    return f"{share[:-1]} %" if share.endswith("%") else f"{share} nodes"


def _enough(number: int, count: int) -> str:
    """The share that would let so many go, in tens of percent."""
    return f"{min(-(-number * 10 // max(count, 1)) * 10, 100)}%"


def _percent(part: Collection[object], whole: Collection[object]) -> int:
    return len(part) * 100 // max(len(whole), 1)


def _some(hosts: Iterable[str]) -> str:
    listed = list(hosts)
    return ", ".join(listed[:_SHOWN]) + (" …" if len(listed) > _SHOWN else "")
