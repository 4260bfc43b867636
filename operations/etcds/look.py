"""How the members of an etcd are: what each says, what its host's agent says, and what both come to."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from clients.access import Access
from clients.agent_client import AgentClient, AgentError
from clients.etcd_client import EtcdClient, EtcdError, MemberStatus
from cluster.spec import Cluster, RoleName
from etcd.members import Member, agent_port, members, settings
from network.addresses import plan

SLOW_FSYNC_S = 0.010
"""etcd.io, "Hardware recommendations": the 99th percentile of fsync of the log is to be below 10 ms."""
SKEW_S = 2.0
EXPIRES_SOON_S = 30 * 86400
_T = TypeVar("_T")


@dataclass(frozen=True)
class Seen:
    """A member of the spec. status: None where it doesn't answer. ailment: "" where it is healthy.

    agent: what its host's agent tells, {} where that doesn't answer, and then `agent_error` says why.
    """

    member: Member
    status: MemberStatus | None
    ailment: str
    agent: dict[str, Any]
    agent_error: str

    @property
    def name(self) -> str:
        return self.member.name

    @property
    def healthy(self) -> bool:
        return not self.ailment


@dataclass(frozen=True)
class Etcd:
    """One etcd of a cluster, and the ways to it."""

    cluster: Cluster
    role: RoleName
    client: EtcdClient
    agents: dict[str, AgentClient]
    members: tuple[Member, ...]

    def member(self, name: str) -> Member:
        """ValueError that lists the members where there is none of that name."""
        for each in self.members:
            if each.name == name:
                return each
        known = ", ".join(each.name for each in self.members)
        raise ValueError(f"etcd {self.role} has no member {name}; its members are {known}")

    @property
    def command(self) -> Callable[[str], str]:
        """The command line of a verb for this etcd."""
        return lambda verb: f"./menagerie etcd {verb} {self.cluster.name} {self.role}"


@dataclass(frozen=True)
class View:
    """All members as they were at one moment."""

    etcd: Etcd
    seen: tuple[Seen, ...]

    @property
    def healthy(self) -> tuple[Seen, ...]:
        return tuple(each for each in self.seen if each.healthy)

    @property
    def answering(self) -> tuple[tuple[Seen, MemberStatus], ...]:
        return tuple((each, each.status) for each in self.seen if each.status)

    @property
    def has_quorum(self) -> bool:
        """Members are healthy if they get an answer with a quorum."""
        return bool(self.healthy) or any("alarm" in each.ailment.lower() for each in self.seen)

    @property
    def leader(self) -> Seen | None:
        return next((each for each, status in self.answering if status.leads), None)

    @property
    def revision(self) -> int:
        """The newest that a member tells; 0 where none does."""
        return max((status.revision for _, status in self.answering), default=0)

    @property
    def alarms(self) -> tuple[str, ...]:
        """Kinds: NOSPACE, CORRUPT."""
        told = " ".join(error for _, status in self.answering for error in status.errors)
        return tuple(kind for kind in ("CORRUPT", "NOSPACE") if kind in told)


def reach(cluster: Cluster, access: Access, role: RoleName) -> Etcd:
    """The ways to one etcd of a cluster; asks nobody yet."""
    everyone = members(cluster, role, plan(cluster))
    agents = {each.name: AgentClient(access, role, each.name, agent_port(cluster)) for each in everyone}
    return Etcd(cluster, role, EtcdClient(access, role), agents, everyone)


def look(etcd: Etcd) -> View:
    """Ask every member and every agent, side by side."""
    with ThreadPoolExecutor(2) as pool:
        asked = pool.submit(_answers, etcd.client.ailments), pool.submit(_answers, etcd.client.statuses)
        told = of_all(etcd, _asked)
    ailments, statuses = asked[0].result(), asked[1].result()
    return View(
        etcd,
        tuple(
            Seen(each, statuses.get(each.name), ailments.get(each.name, "etcdctl does not answer"), *told[each.name])
            for each in etcd.members
        ),
    )


def of_all(etcd: Etcd, do: Callable[[AgentClient], _T], only: Iterable[str] | None = None) -> dict[str, _T]:
    """Member -> what came of it, at all agents or some, side by side. The first failure, once all are done."""
    chosen = list(etcd.agents if only is None else only)
    with ThreadPoolExecutor(max(len(chosen), 1)) as pool:
        running = {name: pool.submit(do, etcd.agents[name]) for name in chosen}
    return {name: each.result() for name, each in running.items()}


def _asked(agent: AgentClient) -> tuple[dict[str, Any], str]:
    asked = time.time()
    try:
        told = agent.state()
    except AgentError as error:
        return {}, str(error)
    return told | {"ahead_s": told["clock"] - (asked + time.time()) / 2}, ""


def _answers(ask: Callable[[], dict[str, _T]]) -> dict[str, _T]:
    try:
        return ask()
    except EtcdError:
        return {}


def findings(view: View) -> tuple[str, ...]:
    """What is not as it should be, and the command that helps; the worst first."""
    return (*_of_quorum(view), *_of_alarms(view), *_of_hosts(view))


def lost_quorum(view: View) -> str:
    """The sentence for an etcd without a quorum."""
    etcd = view.etcd
    return (
        f"etcd {etcd.role} has lost quorum ({len(view.answering)} of {len(view.seen)} members). "
        "I won't change membership. Bring a member back, or restore: "
        f"{etcd.command('restore')} (without --snapshot it takes the newest verified snapshot)"
    )


def _of_quorum(view: View) -> Iterable[str]:
    etcd, count = view.etcd, len(view.seen)
    if not view.has_quorum:
        yield lost_quorum(view)
        return
    down = [each for each in view.seen if each.status is None]
    spare = (count - 1) // 2 - len(down)
    for each in down:
        left = {0: "one more loss stops them", 1: "1 more member may be lost"}.get(spare, f"{spare} more may be lost")
        words = f" ({said})" if (said := each.agent.get("last_words")) else ""
        yield (
            f"etcd {etcd.role}: {count - len(down)} of {count} members healthy; {each.name} ({each.member.address}) is "
            f"down{words}. Writes still work; {left}. Replace it: {etcd.command('replace')} {each.name}"
        )
    cut_off = [each for each in view.seen if each.status and not each.healthy and not view.alarms]
    for each in cut_off:
        others = ", ".join(str(other.member.address) for other in view.seen if other is not each)
        yield (
            f"etcd {etcd.role}: {each.name} can't reach its peers; check TCP {each.member.peer_port} between "
            f"{each.member.address} and {others}"
        )
    for each, status in view.answering:
        if status.learner:
            yield f"etcd {etcd.role}: {each.name} has no vote yet; to go on: {etcd.command('replace')} {each.name}"


def _of_alarms(view: View) -> Iterable[str]:
    etcd = view.etcd
    if "CORRUPT" in view.alarms:
        yield (
            f"etcd {etcd.role}: CORRUPT alarm, a member disagrees with its peers; journalctl of etcd-{etcd.role} on the "
            f"hosts names it. Replace it: {etcd.command('replace')} MEMBER --although-healthy"
        )
    if "NOSPACE" in view.alarms:
        full = max((status for _, status in view.answering), key=lambda status: status.size)
        quota = full.quota or settings(etcd.cluster, etcd.role).quota
        yield (
            f"etcd {etcd.role}: NOSPACE alarm ({mb(full.size)} of {mb(quota)}). Reads and deletes only. "
            f"Run: {etcd.command('recover-space')}"
        )


def _of_hosts(view: View) -> Iterable[str]:
    for each in view.seen:
        if each.agent_error:
            yield f"{each.agent_error}; docs/runbooks/etcd-agent-silent.md"
            continue
        fsync, ahead = each.agent.get("fsync_p99_s"), float(each.agent["ahead_s"])
        if fsync and fsync > SLOW_FSYNC_S:
            yield (
                f"{each.name}: fsync p99 {fsync * 1000:.0f} ms of {each.agent['data_dir']} "
                f"(limit {SLOW_FSYNC_S * 1000:.0f} ms). Network disks cause this; use a local SSD."
            )
        if abs(ahead) > SKEW_S:
            side = "ahead of" if ahead > 0 else "behind"
            yield f"{each.name}: its clock is {abs(ahead):.0f} s {side} this machine's (limit {SKEW_S:.0f} s)"
        if each.agent["held"]:
            yield f"{each.name}: stopped by {each.agent['held']}, which was not finished: run that verb again"
        soon = {
            path: until for path, until in each.agent["certificates"].items() if until - time.time() < EXPIRES_SOON_S
        }
        for path, until in soon.items():
            yield f"{each.name}: {path} expires {time.strftime('%Y-%m-%d', time.gmtime(until))}"


def mb(size: float) -> str:
    """Bytes for people."""
    return f"{size / 10**6:.1f} MB" if size < 10**9 else f"{size / 10**9:.1f} GB"
