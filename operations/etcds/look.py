"""State of an etcd's members: from the members, from the agents on their hosts, and the findings from both."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from clients.access import Access
from clients.agent_client import AgentClient, AgentError
from clients.etcd_client import EtcdClient, EtcdError, MemberStatus
from cluster.errors import RefusedError
from cluster.spec import Cluster, RoleName
from etcd.members import Member, agent_port, members, settings
from network.addresses import plan

SLOW_FSYNC_S = 0.010
"""etcd.io, "Hardware recommendations": the 99th percentile of WAL fsync should be below 10 ms."""
SKEW_S = 2.0
EXPIRES_SOON_S = 30 * 86400
_T = TypeVar("_T")


@dataclass(frozen=True)
class MemberState:
    """State of a member in the spec. status: None if it doesn't respond. problem: "" if it is healthy.

    agent: the report of its host's agent; {} if there is none, and `agent_error` says why.
    """

    member: Member
    status: MemberStatus | None
    problem: str
    agent: dict[str, Any]
    agent_error: str

    @property
    def name(self) -> str:
        return self.member.name

    @property
    def healthy(self) -> bool:
        return not self.problem


@dataclass(frozen=True)
class EtcdAccess:
    """One etcd of a cluster, with clients for its members and agents."""

    cluster: Cluster
    role: RoleName
    client: EtcdClient
    agents: dict[str, AgentClient]
    members: tuple[Member, ...]

    def member(self, name: str) -> Member:
        """Return the member of that name. Raises ValueError, with the members' names, if there is none."""
        for candidate in self.members:
            if candidate.name == name:
                return candidate
        names = ", ".join(candidate.name for candidate in self.members)
        raise ValueError(f"etcd {self.role} has no member {name}; its members are {names}")

    @property
    def command(self) -> Callable[[str], str]:
        """Function that returns the command line of a verb for this etcd."""
        return lambda verb: f"./menagerie etcd {verb} {self.cluster.name} {self.role}"

    @property
    def status_command(self) -> str:
        """Command line that shows all members."""
        return f"./menagerie status {self.cluster.name} etcd"


@dataclass(frozen=True)
class EtcdView:
    """State of all members at one moment."""

    etcd: EtcdAccess
    members: tuple[MemberState, ...]

    @property
    def healthy(self) -> tuple[MemberState, ...]:
        return tuple(state for state in self.members if state.healthy)

    @property
    def answering(self) -> tuple[tuple[MemberState, MemberStatus], ...]:
        return tuple((state, state.status) for state in self.members if state.status)

    @property
    def has_quorum(self) -> bool:
        """Whether the etcd has a quorum: a member is healthy only if a request with a quorum succeeds."""
        return bool(self.healthy) or any("alarm" in state.problem.lower() for state in self.members)

    @property
    def leader(self) -> MemberState | None:
        return next((state for state, status in self.answering if status.leads), None)

    @property
    def revision(self) -> int:
        """The highest revision of any member, 0 if none responds."""
        return max((status.revision for _, status in self.answering), default=0)

    @property
    def alarms(self) -> tuple[str, ...]:
        """Kinds of active alarms: NOSPACE, CORRUPT."""
        errors = " ".join(error for _, status in self.answering for error in status.errors)
        return tuple(kind for kind in ("CORRUPT", "NOSPACE") if kind in errors)


def reach(cluster: Cluster, access: Access, role: RoleName) -> EtcdAccess:
    """Return the clients for one etcd of a cluster. Sends no request yet. Raises RefusedError if nobody could send one."""
    refuse_without_private_access(cluster)
    everyone = members(cluster, role, plan(cluster))
    agents = {member.name: AgentClient(access, role, member.name, agent_port(cluster)) for member in everyone}
    return EtcdAccess(cluster, role, EtcdClient(access, role), agents, everyone)


def refuse_without_private_access(cluster: Cluster) -> None:
    """Raise RefusedError if firewalls admit nobody to members of etcds, so that every request would time out."""
    if not cluster.has_private_access:
        raise RefusedError(
            f"nobody reaches the members of {cluster.name}'s etcds: control_plane.public opens the API alone; "
            "add control_plane.operators, the ranges of your VPN or peering (docs/how-to/hybrid.md#reach-a-private-api), "
            f"and run: ./menagerie up {cluster.name}",
            code="no-private-access",
        )


def read_members(etcd: EtcdAccess) -> EtcdView:
    """Ask every member and every agent in parallel."""
    with ThreadPoolExecutor(2) as pool:
        from_members = pool.submit(_or_nothing, etcd.client.ailments), pool.submit(_or_nothing, etcd.client.statuses)
        from_agents = of_all(etcd, _agent_state)
    ailments, statuses = from_members[0].result(), from_members[1].result()
    return EtcdView(
        etcd,
        tuple(
            MemberState(
                member,
                statuses.get(member.name),
                ailments.get(member.name, "etcdctl gave no result"),
                *from_agents[member.name],
            )
            for member in etcd.members
        ),
    )


def of_all(etcd: EtcdAccess, do: Callable[[AgentClient], _T], only: Iterable[str] | None = None) -> dict[str, _T]:
    """Call `do` with all agents, or with `only`, in parallel. Return member -> result. Raise the first failure when
    all are done."""
    chosen = list(etcd.agents if only is None else only)
    with ThreadPoolExecutor(max(len(chosen), 1)) as pool:
        running = {name: pool.submit(do, etcd.agents[name]) for name in chosen}
    return {name: future.result() for name, future in running.items()}


def _agent_state(agent: AgentClient) -> tuple[dict[str, Any], str]:
    sent_at = time.time()
    try:
        state = agent.state()
    except AgentError as error:
        return {}, str(error)
    return state | {"ahead_s": state["clock"] - (sent_at + time.time()) / 2}, ""


def _or_nothing(ask: Callable[[], dict[str, _T]]) -> dict[str, _T]:
    try:
        return ask()
    except EtcdError:
        return {}


def findings(view: EtcdView) -> tuple[str, ...]:
    """Return what is wrong and the command that helps, worst first."""
    return (*_of_quorum(view), *_of_alarms(view), *_of_hosts(view))


def lost_quorum(view: EtcdView) -> str:
    """Return the message for an etcd without a quorum."""
    etcd = view.etcd
    return (
        f"etcd {etcd.role} has lost quorum ({len(view.answering)} of {len(view.members)} members). "
        "Membership can't be changed. Bring a member back, or restore: "
        f"{etcd.command('restore')} (without --snapshot it uses the newest verified snapshot)"
    )


def _of_quorum(view: EtcdView) -> Iterable[str]:
    etcd, count = view.etcd, len(view.members)
    if not view.has_quorum:
        yield lost_quorum(view)
        return
    down = [state for state in view.members if state.status is None]
    spare = (count - 1) // 2 - len(down)
    for state in down:
        left = {0: "losing one more stops them", 1: "1 more member can be lost"}.get(spare, f"{spare} more can be lost")
        words = f" ({last_words})" if (last_words := state.agent.get("last_words")) else ""
        yield (
            f"etcd {etcd.role}: {count - len(down)} of {count} members healthy; {state.name} ({state.member.address}) is "
            f"down{words}. Writes still work; {left}. Replace it: {etcd.command('replace')} {state.name}"
        )
    cut_off = [state for state in view.members if state.status and not state.healthy and not view.alarms]
    for state in cut_off:
        others = ", ".join(str(other.member.address) for other in view.members if other is not state)
        yield (
            f"etcd {etcd.role}: {state.name} can't reach its peers; check TCP {state.member.peer_port} between "
            f"{state.member.address} and {others}"
        )
    for state, status in view.answering:
        if status.learner:
            yield f"etcd {etcd.role}: {state.name} has no vote yet; to continue, run: {etcd.command('replace')} {state.name}"


def _of_alarms(view: EtcdView) -> Iterable[str]:
    etcd = view.etcd
    if "CORRUPT" in view.alarms:
        yield (
            f"etcd {etcd.role}: CORRUPT alarm, a member disagrees with its peers. journalctl -u etcd-{etcd.role} on the "
            f"hosts shows which one. Replace it: {etcd.command('replace')} MEMBER --although-healthy"
        )
    if "NOSPACE" in view.alarms:
        full = max((status for _, status in view.answering), key=lambda status: status.size)
        quota = full.quota or settings(etcd.cluster, etcd.role).quota
        yield (
            f"etcd {etcd.role}: NOSPACE alarm ({mb(full.size)} of {mb(quota)}). Reads and deletes only. "
            f"Run: {etcd.command('recover-space')}"
        )


def _of_hosts(view: EtcdView) -> Iterable[str]:
    for state in view.members:
        if state.agent_error:
            yield f"{state.agent_error}; docs/runbooks/etcd-agent-silent.md"
            continue
        fsync, ahead = state.agent.get("fsync_p99_s"), float(state.agent["ahead_s"])
        if fsync and fsync > SLOW_FSYNC_S:
            yield (
                f"{state.name}: fsync p99 {fsync * 1000:.0f} ms of {state.agent['data_dir']} "
                f"(limit {SLOW_FSYNC_S * 1000:.0f} ms). Network disks cause this; use a local SSD."
            )
        if abs(ahead) > SKEW_S:
            side = "ahead of" if ahead > 0 else "behind"
            yield f"{state.name}: its clock is {abs(ahead):.0f} s {side} this machine's (limit {SKEW_S:.0f} s)"
        if state.agent["held"]:
            yield f"{state.name}: stopped by {state.agent['held']}, which did not finish: run that verb again"
        soon = {
            path: until for path, until in state.agent["certificates"].items() if until - time.time() < EXPIRES_SOON_S
        }
        for path, until in soon.items():
            yield f"{state.name}: {path} expires {time.strftime('%Y-%m-%d', time.gmtime(until))}"


def mb(size: float) -> str:
    """Format bytes for people."""
    return f"{size / 10**6:.1f} MB" if size < 10**9 else f"{size / 10**9:.1f} GB"
