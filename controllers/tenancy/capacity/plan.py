"""The moves that bring hosts in step with allocations, each with its reason. No I/O, no clock.

Idle hosts go first. A host where pods of others still run is closed to them by its taint, and changes its label when the last
has ended; nothing is evicted. Who has a host keeps it as long as the allocation says, so a second plan moves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from cluster.allocations import Allocation
from controllers.tenancy.capacity.hosts import Host
from controllers.tenancy.directory.names import slug


class Verb(StrEnum):
    """What becomes of a host."""

    GIVE = "give"
    """Label and taint are the team's."""
    CLOSE = "close"
    """The taint is the new team's, the label waits for pods of others to end."""
    OPEN = "open"
    """It is everybody's."""
    WAIT = "wait"
    """Closed by an earlier run; nothing is changed yet."""


@dataclass(frozen=True)
class Move:
    """One host. before, after: teams, "" of nobody. waits: the pods that have to end first."""

    verb: Verb
    host: Host
    after: str
    reason: str
    waits: tuple[str, ...] = ()

    @property
    def before(self) -> str:
        return self.host.label

    @property
    def label(self) -> str:
        """What the label is when the move is made."""
        return self.host.label if self.verb in (Verb.CLOSE, Verb.WAIT) else self.after

    def to_json(self) -> dict[str, Any]:
        """As `--json` gives it."""
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
class Known:
    """The teams that `tenancy sync` made namespaces for: name -> the day since which it is frozen, "" if it isn't."""

    teams: Mapping[str, str]

    def objection(self, team: str) -> str:
        """Why a team is given no hosts."""
        if team not in self.teams:
            return f"{team} has no namespace, so nobody could use its hosts: tenancy sync makes one for each team of the directory"
        since = self.teams[team]
        return (
            f"{team} is frozen since {since}, so nobody could use its hosts: take its allocation away" if since else ""
        )


@dataclass(frozen=True)
class Plan:
    """moves: by host. conflicts: allocations that somebody has to decide about. notices: what somebody should know."""

    moves: tuple[Move, ...] = ()
    conflicts: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def changes(self) -> tuple[Move, ...]:
        """Moves that change something now."""
        return tuple(move for move in self.moves if move.verb is not Verb.WAIT)

    @property
    def waiting(self) -> tuple[Move, ...]:
        """Hosts that pods of others still run on."""
        return tuple(move for move in self.moves if move.waits)


@dataclass(frozen=True)
class _Want:
    """An allocation under the name that labels have. fixed: it keeps what it has, and gets no more."""

    team: str
    hosts: int
    fixed: bool


def plan(allocations: tuple[Allocation, ...], hosts: tuple[Host, ...], known: Known) -> Plan:
    """hosts: of all pools. Where there are too few, who has some keeps them, then allocations before others get theirs."""
    moves: list[Move] = []
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
    return Plan(tuple(moves), tuple(each for each in objections if each), tuple(notices))


def _assigned(wants: list[_Want], hosts: list[Host]) -> dict[str, str]:
    """Host -> the team that it is to be, "" of nobody."""
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


def _stays(host: Host, team: str) -> tuple[object, ...]:
    """First who stays: what is wholly the team's, and what has most of its pods."""
    return host.label != team, -host.tied, host.name


def _goes(host: Host, team: str) -> tuple[object, ...]:
    """First who goes: idle ones, of these that work, then those with the fewest pods in the way; nobody's before a team's."""
    busy = len(host.in_the_way(team))
    return busy > 0, not host.ready, busy, bool(host.holder), host.name


def _moves(hosts: list[Host], after: Mapping[str, str], wants: list[_Want]) -> Iterator[Move]:
    allowed = {want.team: want.hosts for want in wants}
    for host in hosts:
        team = after[host.name]
        if team == host.label == host.taint:
            continue
        if not team:
            yield Move(Verb.OPEN, host, team, _freed(host, allowed))
            continue
        waits = () if host.label == team else host.in_the_way(team)
        if not waits:
            yield Move(Verb.GIVE, host, team, _given(host, team, allowed))
        else:
            verb = Verb.WAIT if host.taint == team else Verb.CLOSE
            yield Move(verb, host, team, f"{_given(host, team, allowed)}; pods of others run there", waits)


def _given(host: Host, team: str, allowed: Mapping[str, int]) -> str:
    if host.label == team:
        return f"it is {team}'s, and its taint said {host.taint or 'nothing'}"
    if host.taint == team:
        return f"it is to be {team}'s, and is closed to others"
    return f"{team} has an allocation of {allowed[team]} hosts of {host.pool}"


def _freed(host: Host, allowed: Mapping[str, int]) -> str:
    number = allowed.get(host.holder)
    if number is None:
        return f"{host.holder} has no allocation of {host.pool}"
    return f"{host.holder} has more hosts of {host.pool} than its allocation of {number}"


def _short(pool: str, wants: list[_Want], after: Mapping[str, str]) -> Iterator[str]:
    for want in wants:
        there = sum(team == want.team for team in after.values())
        if there < want.hosts and not want.fixed:
            yield (
                f"{want.team} has {there} of its {want.hosts} hosts of {pool}: the pool has {len(after)} now; "
                "those that join become its own with the next run"
            )
