"""Replaces a member that lost its disk or is corrupt: remove it, add a learner, promote it to a voting member."""

from __future__ import annotations

import secrets

from clients.etcd_client import EtcdError, ListedMember
from clients.waiting import wait_until
from operations.etcds.look import EtcdAccess, EtcdView, lost_quorum, read_members
from operations.etcds.settling import once_settled
from operations.etcds.snapshots import EtcdRefusedError
from operations.record.journal import Journal, Report, Step

STEPS = ("remove", "add", "join", "promote", "healthy")
SYNC_S = 1800
HEALTHY_S = 120


def refuse(view: EtcdView, name: str, *, although_healthy: bool) -> None:
    """Raise EtcdRefusedError if replacing the member would make things worse, or is not needed. Changes nothing."""
    etcd = view.etcd
    if not view.has_quorum:
        raise EtcdRefusedError(lost_quorum(view))
    others = [
        state for state in view.members if state.name != name and not state.healthy and not _only_alarms(state.problem)
    ]
    if others:
        ailing = "; ".join(f"{state.name}: {state.problem}" for state in others)
        raise EtcdRefusedError(
            f"etcd {etcd.role}: another member is unhealthy ({ailing}). Nothing was changed. Fix that one first: "
            f"{etcd.status_command}"
        )
    chosen = next(state for state in view.members if state.name == name)
    if chosen.agent_error:
        raise EtcdRefusedError(
            f"{chosen.agent_error}. Nothing was changed. The member needs a new host first: "
            f"./menagerie up {etcd.cluster.name}"
        )
    voting = bool(chosen.status and not chosen.status.learner)
    if chosen.healthy and voting and not although_healthy:
        raise EtcdRefusedError(
            f"{name} is healthy; replacing it would delete its data and remove a vote meanwhile. Nothing was "
            f"changed. To replace it anyway: {etcd.command('replace')} {name} --although-healthy"
        )


def replace(view: EtcdView, name: str, operation: Journal, step: Step, report: Report) -> EtcdView:
    """Replace the member and return the resulting view. An interrupted run resumes from the etcd's own state."""
    etcd = view.etcd
    if not operation.has("begun"):
        operation.done("begun", token=f"replace-{secrets.token_hex(4)}", member=name)
    token = operation.facts["token"]
    with step("remove"):
        if not operation.has("remove"):
            once_settled(lambda: _remove(etcd, name), report)
            operation.done("remove")
    with step("add"):
        once_settled(lambda: _add(etcd, name), report)
    with step("join"):
        if not operation.has("join"):
            initial_cluster = once_settled(lambda: _initial_cluster(etcd), report)
            etcd.agents[name].act("join", report, token=token, initial_cluster=initial_cluster)
            operation.done("join")
    with step("promote"):
        wait_until(lambda: _promoted(etcd, name), SYNC_S, report)
    with step("healthy"):
        once_settled(lambda: take_back_corrupt(etcd), report)
        return _wait_until_healthy(etcd, report)


def take_back_corrupt(etcd: EtcdAccess) -> None:
    """Clear the CORRUPT alarm of a removed member. Members that still differ raise it again after the next compaction."""
    if "CORRUPT" in etcd.client.alarms():
        etcd.client.disarm()


def _remove(etcd: EtcdAccess, name: str) -> None:
    """Remove the host's old member, but not a learner that an earlier run added and that has not started yet."""
    old = _listed(etcd, name)
    if old and not (old.learner and not old.name):
        etcd.client.remove(old)


def _add(etcd: EtcdAccess, name: str) -> None:
    if _listed(etcd, name) is None:
        etcd.client.add_learner(name, etcd.member(name).peer_url)


def _listed(etcd: EtcdAccess, name: str) -> ListedMember | None:
    """Return the member from the etcd's list, also found by its peer URL: it has no name before its first start."""
    url = etcd.member(name).peer_url
    return next((member for member in etcd.client.listed() if member.name == name or url in member.peer_urls), None)


def _initial_cluster(etcd: EtcdAccess) -> str:
    """Return --initial-cluster for a joining member: exactly the members in the etcd's list, else it refuses to start."""
    names = {member.peer_url: member.name for member in etcd.members}
    return ",".join(f"{member.name or names[url]}={url}" for member in etcd.client.listed() for url in member.peer_urls)


def _promoted(etcd: EtcdAccess, name: str) -> str:
    try:
        member = _listed(etcd, name)
        if member is None:
            return f"{name} is not listed yet"
        return etcd.client.promote(member.id) if member.learner else ""
    except EtcdError as error:
        return str(error)


def _wait_until_healthy(etcd: EtcdAccess, report: Report) -> EtcdView:
    views: list[EtcdView] = []

    def missing() -> str:
        views.append(read_members(etcd))
        ailing = [state for state in views[-1].members if not state.healthy and not _only_alarms(state.problem)]
        return "; ".join(f"{state.name}: {state.problem}" for state in ailing)

    wait_until(missing, HEALTHY_S, report)
    return views[-1]


def _only_alarms(ailment: str) -> bool:
    # Wording of etcdctl endpoint health. A member that was too slow to report its alarms has a different one.
    return ailment.startswith("Active Alarm(s): ")
