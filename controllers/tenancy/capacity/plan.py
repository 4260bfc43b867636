"""Plans the moves that reconcile hosts with allocations, each with its reason. No I/O, no clock.

Idle hosts move first. If pods of others still run on a host, its taint closes it to them, and its label changes when the last of
them has ended; nothing is evicted. A team keeps its hosts while its allocation covers them, so a second plan moves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from cluster.allocations import Allocation
from controllers.tenancy.capacity.hosts import TeamHost
from controllers.tenancy.directory.names import slug


class MoveVerb(StrEnum):
    """What happens to a host."""

    GIVE = "give"
    """Label and taint name the team."""
    CLOSE = "close"
    """The taint names the new team; the label changes when the pods of others have ended."""
    OPEN = "open"
    """The host is open to everybody."""
    WAIT = "wait"
    """An earlier run closed it; nothing changes yet."""


@dataclass(frozen=True)
class HostMove:
    """The move of one host. before, after: teams, "" for none. waits: pods that must end first."""

    verb: MoveVerb
    host: TeamHost
    after: str
    reason: str
    waits: tuple[str, ...] = ()

    @property
    def before(self) -> str:
        return self.host.label

    @property
    def label(self) -> str:
        """Return the label that the host has after this move."""
        return self.host.label if self.verb in (MoveVerb.CLOSE, MoveVerb.WAIT) else self.after

    def to_json(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        return {
            "verb": self.verb,
            "host": self.host.name,
            "pool": self.host.pool,
            "before": self.before,
            "after": self.after,
            "reason": self.reason,
            "waits": list(self.waits),
        }


@dataclass(frozen=True)
class KnownTeams:
    """The teams with a namespace of `tenancy sync`: name -> the day since which it is frozen, "" if it isn't."""

    teams: Mapping[str, str]

    def objection(self, team: str) -> str:
        """Return why a team gets no hosts, "" if it may."""
        if team not in self.teams:
            return f"{team} has no namespace, so nobody could use its hosts; tenancy sync creates one for each team of the directory"
        since = self.teams[team]
        return (
            f"{team} has been frozen since {since}, so nobody could use its hosts; remove its allocation"
            if since
            else ""
        )


@dataclass(frozen=True)
class AllocationPlan:
    """A plan. moves: by host. conflicts: allocations that need a decision. notices: for operators."""

    moves: tuple[HostMove, ...] = ()
    conflicts: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def changes(self) -> tuple[HostMove, ...]:
        """Return the moves that change something now."""
        return tuple(move for move in self.moves if move.verb is not MoveVerb.WAIT)

    @property
    def waiting(self) -> tuple[HostMove, ...]:
        """Return the moves of hosts where pods of others still run."""
        return tuple(move for move in self.moves if move.waits)


@dataclass(frozen=True)
class _Want:
    """An allocation. team: as in labels. fixed: it keeps its hosts and gets no more."""

    team: str
    hosts: int
    fixed: bool


def plan(allocations: tuple[Allocation, ...], hosts: tuple[TeamHost, ...], known: KnownTeams) -> AllocationPlan:
    """Plan the moves. hosts: of all pools.

    If there are too few hosts, teams keep those they have; after that, earlier allocations come first.
    """
    moves: list[HostMove] = []
    notices: list[str] = []
    for pool in sorted({host.pool for host in hosts} | {each.pool for each in allocations}):
        wants = [
            _Want(slug(each.team), each.hosts, bool(known.objection(each.team)))
            for each in allocations
            if each.pool == pool
        ]
        own = sorted((host for host in hosts if host.pool == pool), key=lambda host: host.name)
        after = _assigned(wants, own)
        moves += _moves(own, after, wants)
        notices += _short(pool, wants, after)
    objections = dict.fromkeys(known.objection(each.team) for each in allocations)
    return AllocationPlan(tuple(moves), tuple(each for each in objections if each), tuple(notices))


def _assigned(wants: list[_Want], hosts: list[TeamHost]) -> dict[str, str]:
    """Return host -> its future team, "" for none."""
    after: dict[str, str] = {}
    for want in wants:
        own = sorted((host for host in hosts if host.holder == want.team), key=lambda host: _stays(host, want.team))
        kept = own if want.fixed else own[: want.hosts]
        after |= {host.name: want.team for host in kept}
    for want in wants:
        missing = 0 if want.fixed else want.hosts - sum(team == want.team for team in after.values())
        free = [host for host in hosts if host.name not in after]
        free.sort(key=lambda host, team=want.team: _goes(host, team))  # type: ignore[misc]
        after |= {host.name: want.team for host in free[: max(missing, 0)]}
    return {host.name: after.get(host.name, "") for host in hosts}


def _stays(host: TeamHost, team: str) -> tuple[object, ...]:
    """Sort key, hosts to keep first: those that are completely the team's, then those with most pods that depend on it."""
    return host.label != team, -host.tied, host.name


def _goes(host: TeamHost, team: str) -> tuple[object, ...]:
    """Sort key, hosts to take first: idle ones, then Ready ones, then those with fewest pods in the way, then those of no team."""
    busy = len(host.in_the_way(team))
    return busy > 0, not host.ready, busy, bool(host.holder), host.name


def _moves(hosts: list[TeamHost], after: Mapping[str, str], wants: list[_Want]) -> Iterator[HostMove]:
    allowed = {want.team: want.hosts for want in wants}
    for host in hosts:
        team = after[host.name]
        if team == host.label == host.taint:
            continue
        if not team:
            yield HostMove(MoveVerb.OPEN, host, team, _freed(host, allowed))
            continue
        waits = () if host.label == team else host.in_the_way(team)
        if not waits:
            yield HostMove(MoveVerb.GIVE, host, team, _given(host, team, allowed))
        else:
            verb = MoveVerb.WAIT if host.taint == team else MoveVerb.CLOSE
            yield HostMove(verb, host, team, f"{_given(host, team, allowed)}; pods of others still run there", waits)


def _given(host: TeamHost, team: str, allowed: Mapping[str, int]) -> str:
    if host.label == team:
        return f"it belongs to {team}, but its taint names {host.taint or 'no team'}"
    if host.taint == team:
        return f"it is moving to {team}, and is already closed to others"
    return f"{team} has an allocation of {allowed[team]} hosts of {host.pool}"


def _freed(host: TeamHost, allowed: Mapping[str, int]) -> str:
    number = allowed.get(host.holder)
    if number is None:
        return f"{host.holder} has no allocation of {host.pool}"
    return f"{host.holder} has more hosts of {host.pool} than its allocation of {number}"


def _short(pool: str, wants: list[_Want], after: Mapping[str, str]) -> Iterator[str]:
    for want in wants:
        there = sum(team == want.team for team in after.values())
        if there < want.hosts and not want.fixed:
            yield (
                f"{want.team} has {there} of its {want.hosts} hosts of {pool}, which has {len(after)} hosts now; "
                "it gets hosts that join in the next run"
            )
