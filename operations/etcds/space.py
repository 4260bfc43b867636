"""Give an etcd its space back: compact, defragment one member after another, take the alarm back."""

from __future__ import annotations

from collections.abc import Iterable

from clients.etcd_client import MemberStatus
from clients.waiting import wait_until
from operations.etcds.look import Etcd, Seen, View, look, mb
from operations.etcds.settling import once_settled
from operations.etcds.snapshots import EtcdRefusedError
from operations.record.journal import Journal, Report, Step

RECOVER_STEPS = ("compact", "defragment", "disarm")
DEFRAGMENT_STEPS = ("defragment",)
WORTH = 0.3
"""Share of a database that must be free before a member is stopped for it: it serves nobody while it is written anew."""
_ROOM = 16 * 2**20
AFTER_S = 60


def need(status: MemberStatus) -> int:
    """Bytes that a defragmentation takes: a second copy of what is in use, beside the first."""
    return status.size_in_use + _ROOM


def refuse(view: View, *, after_compaction: bool = False) -> None:
    """EtcdRefusedError where a member can't be asked, or has no room for its second copy. Touches nothing."""
    etcd = view.etcd
    if not view.has_quorum or view.leader is None:
        raise EtcdRefusedError(f"etcd {etcd.role} has no leader. Nothing was changed. See: {etcd.command('state')}")
    silent = [each for each in view.seen if each.status is None or each.agent_error]
    if silent:
        lines = (f"{each.name}: {each.agent_error or each.ailment}" for each in silent)
        raise EtcdRefusedError("every member must answer. Nothing was changed.\n  " + "\n  ".join(lines))
    full = [line for each, status in view.answering if (line := _no_room(each, status))]
    if full and not after_compaction:
        raise EtcdRefusedError("\n  ".join(f"{line} Nothing was changed." for line in full))


def _no_room(seen: Seen, status: MemberStatus) -> str:
    free = int(seen.agent["disk_free"])
    if free >= need(status):
        return ""
    return f"{seen.name}: {mb(free)} free in {seen.agent['data_dir']}, defrag needs about {mb(need(status))}."


def recover(view: View, operation: Journal, step: Step, report: Report) -> View:
    """Compact to now, defragment all, take alarms back; the members as they are then."""
    etcd = view.etcd
    with step("compact"):
        if not operation.has("compact"):
            once_settled(lambda: etcd.client.compact(view.revision), report)
            operation.done("compact")
    with step("defragment"):
        _one_by_one(view, [each.name for each in view.seen], operation, report)
    with step("disarm"):
        after = look(etcd)
        full = [(each, status) for each, status in after.answering if status.quota and status.size >= status.quota]
        if full:
            lines = (f"{each.name}: {mb(status.size)} of {mb(status.quota)}" for each, status in full)
            raise EtcdRefusedError(
                f"etcd {etcd.role} is still full: {'; '.join(lines)}. Its keys take that much: delete some, or raise "
                f"etcd.{etcd.role}.quota in the spec. The alarm stays."
            )
        once_settled(etcd.client.disarm, report)
    return look(etcd)


def worth(view: View) -> tuple[str, ...]:
    """Members of whose database so much is free that it pays to write it anew."""
    return tuple(
        each.name for each, status in view.answering if status.size and 1 - status.size_in_use / status.size > WORTH
    )


def defragment(view: View, names: Iterable[str], operation: Journal, step: Step, report: Report) -> View:
    """Write the databases of these members anew, one after another; the members as they are then."""
    with step("defragment"):
        _one_by_one(view, list(names), operation, report)
    return look(view.etcd)


def _one_by_one(view: View, names: list[str], operation: Journal, report: Report) -> None:
    """Followers first, the leader last: while it is away others wait for it."""
    leader = view.leader.name if view.leader else ""
    for name in sorted(names, key=lambda name: name == leader):
        if operation.has(f"defragment {name}"):
            continue
        report(name)
        _refuse_full(view.etcd, name)
        view.etcd.client.defragment(name)
        wait_until(lambda member=name: _silent(view.etcd, member), AFTER_S, report)  # type: ignore[misc]
        operation.done(f"defragment {name}")


def _refuse_full(etcd: Etcd, name: str) -> None:
    seen = next(each for each in look(etcd).seen if each.name == name)
    line = _no_room(seen, seen.status) if seen.status and not seen.agent_error else ""
    if line:
        raise EtcdRefusedError(f"{line} {name} was not touched.")


def _silent(etcd: Etcd, name: str) -> str:
    return "" if name in etcd.client.statuses() else f"{name} does not answer yet"
