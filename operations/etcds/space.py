"""Recovers an etcd's space: compact, defragment one member after another, clear the alarm."""

from __future__ import annotations

from collections.abc import Iterable

from clients.etcd_client import MemberStatus
from clients.waiting import wait_until
from operations.etcds.look import EtcdAccess, EtcdView, MemberState, mb, read_members
from operations.etcds.settling import once_settled
from operations.etcds.snapshots import EtcdRefusedError
from operations.record.journal import Journal, Report, Step

RECOVER_STEPS = ("compact", "defragment", "disarm")
DEFRAGMENT_STEPS = ("defragment",)
WORTH = 0.3
"""Share of a database that must be free to justify a defragmentation: the member serves nobody meanwhile."""
_ROOM = 16 * 2**20
AFTER_S = 60


def need(status: MemberStatus) -> int:
    """Return the bytes that a defragmentation needs: a second copy of the data in use."""
    return status.size_in_use + _ROOM


def refuse(view: EtcdView, *, after_compaction: bool = False) -> None:
    """Raise EtcdRefusedError if a member doesn't respond or has no room for the second copy. Changes nothing."""
    etcd = view.etcd
    if not view.has_quorum or view.leader is None:
        raise EtcdRefusedError(f"etcd {etcd.role} has no leader. Nothing was changed. See: {etcd.status_command}")
    silent = [state for state in view.members if state.status is None or state.agent_error]
    if silent:
        lines = (f"{state.name}: {state.agent_error or state.problem}" for state in silent)
        raise EtcdRefusedError("every member must respond. Nothing was changed.\n  " + "\n  ".join(lines))
    full = [line for state, status in view.answering if (line := _no_room(state, status))]
    if full and not after_compaction:
        raise EtcdRefusedError("\n  ".join(f"{line} Nothing was changed." for line in full))


def _no_room(state: MemberState, status: MemberStatus) -> str:
    free = int(state.agent["disk_free"])
    if free >= need(status):
        return ""
    return f"{state.name}: {mb(free)} free in {state.agent['data_dir']}, defrag needs about {mb(need(status))}."


def recover(view: EtcdView, operation: Journal, step: Step, report: Report) -> EtcdView:
    """Compact to the current revision, defragment all members and clear alarms. Return the resulting view."""
    etcd = view.etcd
    with step("compact"):
        if not operation.has("compact"):
            once_settled(lambda: etcd.client.compact(view.revision), report)
            operation.done("compact")
    with step("defragment"):
        _one_by_one(view, [state.name for state in view.members], operation, report)
    with step("disarm"):
        after = read_members(etcd)
        full = [(state, status) for state, status in after.answering if status.quota and status.size >= status.quota]
        if full:
            lines = (f"{state.name}: {mb(status.size)} of {mb(status.quota)}" for state, status in full)
            raise EtcdRefusedError(
                f"etcd {etcd.role} is still full: {'; '.join(lines)}. Its keys need this space: delete some, or raise "
                f"etcd.{etcd.role}.quota in the spec. The alarm stays."
            )
        once_settled(etcd.client.disarm, report)
    return read_members(etcd)


def worth(view: EtcdView) -> tuple[str, ...]:
    """Return the members whose databases have enough free space to justify a defragmentation."""
    return tuple(
        state.name for state, status in view.answering if status.size and 1 - status.size_in_use / status.size > WORTH
    )


def defragment(view: EtcdView, names: Iterable[str], operation: Journal, step: Step, report: Report) -> EtcdView:
    """Defragment these members, one after another. Return the resulting view."""
    with step("defragment"):
        _one_by_one(view, list(names), operation, report)
    return read_members(view.etcd)


def _one_by_one(view: EtcdView, names: list[str], operation: Journal, report: Report) -> None:
    """Defragment followers first, the leader last: the others wait while the leader is busy."""
    leader = view.leader.name if view.leader else ""
    for name in sorted(names, key=lambda name: name == leader):
        if operation.has(f"defragment {name}"):
            continue
        report(name)
        _refuse_full(view.etcd, name)
        view.etcd.client.defragment(name)
        wait_until(lambda member=name: _silent(view.etcd, member), AFTER_S, report)  # type: ignore[misc]
        operation.done(f"defragment {name}")


def _refuse_full(etcd: EtcdAccess, name: str) -> None:
    state = next(item for item in read_members(etcd).members if item.name == name)
    line = _no_room(state, state.status) if state.status and not state.agent_error else ""
    if line:
        raise EtcdRefusedError(f"{line} {name} was not changed.")


def _silent(etcd: EtcdAccess, name: str) -> str:
    return "" if name in etcd.client.statuses() else f"{name} does not respond yet"
