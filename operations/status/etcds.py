"""Status of an etcd's members: health, leadership, size."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from clients.access import Access
from clients.agent_client import AgentClient, AgentError
from clients.etcd_client import EtcdClient, MemberStatus
from cluster.spec import Cluster, RoleName
from network.addresses import ROLES
from operations.etcds.look import SLOW_FSYNC_S, EtcdView, MemberState, of_all, reach
from operations.etcds.payloads import hosts
from operations.status.model import StatusItem

FULL = 0.8
"""Share of the quota at which an operator should act. At the quota itself, an etcd accepts no writes."""


def health(cluster: str, role: str, etcd: EtcdClient) -> Iterator[StatusItem]:
    """Yield each member's health: what a verb waits for when it builds a cluster."""
    ailments = etcd.ailments()
    for name, ailment in ailments.items():
        yield _member(cluster, role, name, ailment, None)


def figures(cluster: str, role: str, etcd: EtcdClient) -> Iterator[StatusItem]:
    """Yield each member with its own status, then the quorum."""
    with ThreadPoolExecutor(2) as pool:  # with a dead member, each takes its full time-out
        future = pool.submit(etcd.statuses)
        ailments, statuses = etcd.ailments(), future.result()
    for name, ailment in ailments.items():
        yield _member(cluster, role, name, ailment, statuses.get(name))
    yield _quorum(cluster, role, ailments, statuses)


def unasked(role: str) -> Iterator[StatusItem]:
    """Yield an item in place of members that nobody can ask; the API's own checks say whether the etcd works."""
    detail = (
        "not asked: members have private addresses, and the spec has no private way to them (control_plane.operators)"
    )
    yield StatusItem("etcds", f"members of {role}", True, detail)


def by_agents(cluster: Cluster, access: Access) -> Iterator[StatusItem]:
    """Yield facts from members' hosts: disks, leader changes, payloads. They are informational, so every item is ok.

    Hosts that can't be asked are left out; `status CLUSTER etcd` shows them.
    """
    views = [_agents_view(cluster, access, role) for role in ROLES]
    for view in views:
        yield from (_disk(cluster.name, state) for state in view.members if state.agent.get("fsync_p99_s") is not None)
    late = [host for host in hosts(views, access.etcd_payloads) if host.text and host.running and not host.is_done]
    for host in late:
        text = (
            "has applied only a part of its payload"
            if host.is_half_way
            else "runs a payload that differs from the one in its store"
        )
        yield StatusItem("etcds", f"{host.name}, payload", True, f"{text}: ./menagerie etcd roll {cluster.name}")


def _disk(cluster: str, state: MemberState) -> StatusItem:
    fsync_s, changes = float(state.agent["fsync_p99_s"]), state.agent["leader_changes"]
    slow = f", slow: ./menagerie status {cluster} etcd" if fsync_s > SLOW_FSYNC_S else ""
    detail = f"fsync p99 {fsync_s * 1000:.1f} ms{slow}; {changes} leader changes since it started"
    return StatusItem("etcds", f"{state.name}, disk", True, detail)


def _agents_view(cluster: Cluster, access: Access, role: RoleName) -> EtcdView:
    """Do the same as `look`, but ask only the agents: the members are asked elsewhere."""
    etcd = reach(cluster, access, role)
    states = of_all(etcd, _state)
    return EtcdView(etcd, tuple(MemberState(member, None, "", states[member.name], "") for member in etcd.members))


def _state(agent: AgentClient) -> dict[str, Any]:
    try:
        return agent.state()
    except AgentError:
        return {}


def _member(cluster: str, role: str, name: str, ailment: str, status: MemberStatus | None) -> StatusItem:
    detail = f"member of {role}, {ailment or 'healthy'}"
    if status is None:
        return StatusItem(
            "etcds", name, not ailment, detail, f"./menagerie etcd replace {cluster} {role} {name}" if ailment else ""
        )
    kind = "leader" if status.leads else "learner" if status.learner else "follower"
    # Members before 3.6 do not report their quota.
    quota = f" of {_size(status.quota)}" if status.quota else ""
    detail += f", {kind}, {_size(status.size_in_use)} in use, {_size(status.size)} on disk{quota}"
    detail += "".join(f", {error}" for error in status.errors)
    is_full = bool(status.quota) and status.size > FULL * status.quota
    if any("NOSPACE" in text for text in (ailment, *status.errors)) or is_full:
        return StatusItem("etcds", name, False, detail, f"./menagerie etcd recover-space {cluster} {role}")
    ok = not ailment and not status.errors and not status.learner
    return StatusItem("etcds", name, ok, detail, "" if ok else f"./menagerie status {cluster} etcd")


def _quorum(cluster: str, role: str, ailments: dict[str, str], statuses: dict[str, MemberStatus]) -> StatusItem:
    """Return whether the etcd can lose one more member, and which one is the leader."""
    name, count = f"quorum of {role}", len(ailments)
    answering = [member for member, status in statuses.items() if not status.learner]
    spare = len(answering) - (count // 2 + 1)
    detail = f"{len(answering)} of {count} members respond"
    if spare < 0:
        return StatusItem(
            "etcds",
            name,
            False,
            f"{detail}: it has lost quorum and accepts no writes",
            f"./menagerie etcd restore {cluster} {role}",
        )
    leaders = sorted(member for member, status in statuses.items() if status.leads)
    terms = sorted({status.term for status in statuses.values()})
    if len(leaders) != 1 or len(terms) != 1:
        led = ", ".join(leaders) or "none"
        return StatusItem(
            "etcds", name, False, f"{detail}; leader: {led}, terms {terms}", f"./menagerie status {cluster} etcd"
        )
    detail += f"; leader: {leaders[0]}, term {terms[0]}"
    if len(answering) < count:
        left = f"{spare} more losses" if spare > 1 else "one more loss" if spare else "any further loss"
        missing = next(member for member in ailments if member not in statuses or statuses[member].learner)
        return StatusItem(
            "etcds", name, False, f"{detail}. Writes still work; {left} {'stop' if spare > 1 else 'stops'} them",
            f"./menagerie etcd replace {cluster} {role} {missing}",
        )  # fmt: skip
    return StatusItem("etcds", name, True, detail)


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"
