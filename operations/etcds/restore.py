"""Restores an etcd from a snapshot: all members from the same bytes, or none.

Nothing running is changed until the members are stopped. Their old data stays on their disks. If the run fails before the
first member has its new data, all members are started again with the old data.
"""

from __future__ import annotations

import base64
import io
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import BinaryIO

from clients.agent_client import AgentClient, AgentError
from clients.waiting import wait_until
from etcd.members import data_dir
from operations.etcds.look import EtcdAccess, EtcdView, mb, of_all, read_members
from operations.etcds.snapshots import EtcdRefusedError, EtcdSnapshot, ago, better, refuse_wrong
from operations.record.journal import Journal, Report, Step

BUMP = 10**9
"""Revisions to skip: etcd.io's own example, far more than any client can have seen after the snapshot."""
STEPS = ("fetch", "prepare", "stop", "swap", "start", "healthy")
HEALTHY_S = 300
PIECE_BYTES = 2 * 2**20
"""Size of the pieces of a snapshot that is sent to agents. In base64, a piece fits the agents' maximum body size."""
EMPTY = "empty"
"""Stands for the ID of an empty snapshot."""
_ROOM = 256 * 2**20
"""Free space that is needed in addition to twice the snapshot, as in `menagerie_etcd.snapshots`."""


@dataclass(frozen=True)
class RestorePlan:
    """The plan of a restore. snapshot: None for an empty etcd. warnings: sentences."""

    etcd: EtcdAccess
    snapshot: EtcdSnapshot | None
    known: tuple[EtcdSnapshot, ...]
    revision_now: int
    old_cluster_ids: frozenset[str]
    warnings: tuple[str, ...]

    @property
    def chosen(self) -> str:
        return self.snapshot.id if self.snapshot else EMPTY

    @property
    def revision(self) -> int:
        return (self.snapshot.revision or 0) if self.snapshot else 0

    @property
    def bump(self) -> int:
        """Revisions to skip, so that every revision that clients have seen is in the past."""
        return max(self.revision_now - self.revision, 0) + BUMP

    def lost(self, now: datetime) -> str:
        """Return what will be lost, as a sentence."""
        etcd = self.etcd.role
        if self.snapshot is None:
            return f"every key of etcd {etcd} will be lost; it is at revision {self.revision_now or 'unknown'}"
        since = f"everything written to etcd {etcd} in the last {ago(now - self.snapshot.time)} will be lost"
        if self.revision_now and self.snapshot.revision:
            return f"{since}: {max(self.revision_now - self.revision, 0)} revisions, from {self.revision}"
        return f"{since}; the number of revisions is unknown, because no member responds"


def plan(
    view: EtcdView,
    snapshot: EtcdSnapshot | None,
    known: Sequence[EtcdSnapshot],
    operation: Journal,
    now: datetime,
    *,
    accept_stale: bool = False,
) -> RestorePlan:
    """Plan the restore. Changes nothing.

    Raises EtcdRefusedError for a foreign or old snapshot, silent agents, or too little disk space.
    """
    etcd = view.etcd
    ids = frozenset(status.cluster_id for _, status in view.answering)
    warnings: tuple[str, ...] = ()
    if operation.has("swapping"):
        _refuse_another(etcd, snapshot, operation)
        ids = frozenset(operation.facts["old_ids"].split())
    elif snapshot:
        known_ids = ids | {item.cluster_id for item in known if item.cluster_id}
        warnings = refuse_wrong(snapshot, etcd.cluster.name, etcd.role, known_ids, now, accept_stale=accept_stale)
    silent = [item.agent_error for item in view.members if item.agent_error]
    if silent:
        raise EtcdRefusedError("the agents of all members must respond. Nothing was changed.\n  " + "\n  ".join(silent))
    if not operation.has("swapping"):
        _refuse_without_room(view, snapshot.size if snapshot else 0)
    newest_revision = max([view.revision, *(item.revision or 0 for item in known)])
    return RestorePlan(etcd, snapshot, tuple(known), newest_revision, ids, warnings)


def _refuse_another(etcd: EtcdAccess, snapshot: EtcdSnapshot | None, operation: Journal) -> None:
    started, chosen = operation.facts["snapshot"], snapshot.id if snapshot else EMPTY
    if chosen != started:
        option = "--to-empty" if started == EMPTY else f"--snapshot {started} (or --file)"
        raise EtcdRefusedError(
            f"a restore of etcd {etcd.role} from {started} was interrupted while members were stopped. "
            f"Finish that one first: {etcd.command('restore')} {option}"
        )


def _refuse_without_room(view: EtcdView, size: int) -> None:
    needed = 2 * size + _ROOM
    full = [
        f"{state.name}: {mb(state.agent['disk_free'])} free in {state.agent['data_dir']}, a restore needs about {mb(needed)}"
        for state in view.members
        if state.agent["disk_free"] < needed
    ]
    if full:
        way_out = (
            f"Nothing was changed. To delete what earlier restores kept: {view.etcd.command('forget')} --older-than 0s"
        )
        raise EtcdRefusedError("\n  ".join((*full, way_out)))


def begin(plan_: RestorePlan, operation: Journal, report: Report) -> None:
    """Record the token and the bump, for all runs of the operation.

    A run from another snapshot starts from scratch; this is allowed only before members are stopped. A run to an empty
    etcd also does, if it was interrupted before all members had the same bytes: no two empty snapshots are equal.
    """
    before = operation.facts.get("token", "")
    is_whole = plan_.snapshot is not None or operation.facts.get("fetched") == before
    if operation.has("begun") and operation.facts["snapshot"] == plan_.chosen and is_whole:
        return
    if before:
        of_all(plan_.etcd, lambda agent: agent.act("forget", report, token=before))
    operation.done(
        "begun",
        token=f"restore-{secrets.token_hex(4)}",
        bump=str(plan_.bump),
        snapshot=plan_.chosen,
        old_ids=" ".join(sorted(plan_.old_cluster_ids)),
    )


def bring_beside(plan_: RestorePlan, operation: Journal, step: Step, report: Report) -> None:
    """Fetch and prepare on all members, which keep serving. Raises EtcdRefusedError if the snapshot is damaged."""
    begin(plan_, operation, report)
    token, bump = operation.facts["token"], int(operation.facts["bump"])
    with step("fetch"):
        fetched = operation.facts.get("fetched") == token
        if not fetched or not (plan_.snapshot is None or operation.has("swapping")):
            _fetch(plan_, token, report)
            operation.done("fetch", fetched=token)
    with step("prepare"):
        arguments = {
            "initial_cluster": ",".join(f"{member.name}={member.peer_url}" for member in plan_.etcd.members),
            "initial_cluster_token": f"{plan_.etcd.cluster.name}-{plan_.etcd.role}-{token}",
            "bump_revision": bump,
        }
        of_all(plan_.etcd, lambda agent: agent.act("prepare", report, token=token, **arguments))


def change_over(plan_: RestorePlan, operation: Journal, step: Step, report: Report) -> EtcdView:
    """Stop, swap and start all members; they are down meanwhile. Return the resulting view, with a new cluster ID."""
    etcd, token = plan_.etcd, operation.facts["token"]
    with step("stop"):
        if not operation.has("start"):
            _stop(etcd, token, operation, report)
    with step("swap"):
        if not operation.has("start"):
            if not operation.has("swapping"):
                operation.done("swapping")
            of_all(etcd, lambda agent: agent.act("swap", report, token=token))
    with step("start"):
        if not operation.has("start"):
            of_all(etcd, lambda agent: agent.act("start", report))
            operation.done("start")
    with step("healthy"):
        return _wait_until_healthy(plan_, int(operation.facts["bump"]), report)


def _fetch(plan_: RestorePlan, token: str, report: Report) -> None:
    try:
        if plan_.snapshot is None:
            _fetch_empty(plan_.etcd, token, report)
        else:
            _fetch_one(plan_.etcd, plan_.snapshot, token, report)
    except AgentError as error:
        if plan_.snapshot is None or not any(word in str(error) for word in _BAD):
            raise
        raise EtcdRefusedError(
            f"snapshot {plan_.snapshot.id}: {error}.{better(plan_.known, plan_.snapshot)}. Nothing was changed."
        ) from None


_BAD = ("hash mismatch", "another revision", "truncated", "damaged", "etcdutl")


def _fetch_empty(etcd: EtcdAccess, token: str, report: Report) -> None:
    """Give all members the empty snapshot that the first member's host creates."""
    snapshot = base64.b64decode(next(iter(etcd.agents.values())).act("empty-snapshot")["inline"])

    def bring(agent: AgentClient) -> None:
        _hand_over(agent, io.BytesIO(snapshot), len(snapshot), token, report)
        agent.act("fetch", report, token=token, size=len(snapshot))

    of_all(etcd, bring)


def _fetch_one(etcd: EtcdAccess, snapshot: EtcdSnapshot, token: str, report: Report) -> None:
    facts = {"size": snapshot.size, "hash": snapshot.hash, "revision": snapshot.revision}

    def bring(agent: AgentClient) -> None:
        if snapshot.path is None:
            agent.act("fetch", report, token=token, snapshot=snapshot.id, **facts)
            return
        with snapshot.path.open("rb") as file:
            _hand_over(agent, file, snapshot.size, token, report)
        agent.act("fetch", report, token=token, **facts)

    of_all(etcd, bring)


def _hand_over(agent: AgentClient, file: BinaryIO, size: int, token: str, report: Report) -> None:
    """Send the snapshot in pieces; resume where an earlier run was interrupted."""
    taken = 0
    while taken < size:
        file.seek(taken)
        if not (piece := file.read(PIECE_BYTES)):
            raise EtcdRefusedError(
                f"the snapshot file was truncated while it was read: {taken} of {size} bytes. Nothing was changed."
            )
        body = {"size": size, "offset": taken, "piece": base64.b64encode(piece).decode()}
        taken = int(agent.act("take", report, token=token, **body)["taken"])
        report(f"{agent.member}: {mb(taken)} of {mb(size)}")


def _stop(etcd: EtcdAccess, token: str, operation: Journal, report: Report) -> None:
    """Stop all members. If one can't be stopped and none has new data yet, start them all again."""
    try:
        of_all(etcd, lambda agent: agent.act("stop", report, token=token))
    except AgentError as failed:
        if operation.has("swapping"):
            raise
        for agent in etcd.agents.values():
            try:
                agent.act("start", report)
            except AgentError as error:
                failed.add_note(f"  and could not be started again: {error}")
        raise


def _wait_until_healthy(plan_: RestorePlan, bump: int, report: Report) -> EtcdView:
    views: list[EtcdView] = []

    def missing() -> str:
        view = read_members(plan_.etcd)
        views.append(view)
        ailing = [f"{state.name}: {state.problem}" for state in view.members if not state.healthy]
        if ailing:
            return "; ".join(ailing)
        ids = {status.cluster_id for _, status in view.answering}
        if len(ids) != 1 or ids & plan_.old_cluster_ids:
            return f"members have the cluster IDs {', '.join(sorted(ids))}"
        low = [state.name for state, status in view.answering if status.revision < plan_.revision + bump]
        return f"{', '.join(low)}: revision is below {plan_.revision + bump}" if low else ""

    wait_until(missing, HEALTHY_S, report)
    return views[-1]


def notes_after(plan_: RestorePlan, operation: Journal, view: EtcdView) -> tuple[str, ...]:
    """Return what an operator should know after the restore, as sentences."""
    token, bump = operation.facts["token"], int(operation.facts["bump"])
    (cluster_id,) = {status.cluster_id for _, status in view.answering}
    return (
        f"etcd {plan_.etcd.role} is healthy, with cluster ID {cluster_id}",
        f"revision raised from {plan_.revision} to {plan_.revision + bump} so that watchers can't read the past",
        f"the members' old data is kept in {data_dir(plan_.etcd.cluster, plan_.etcd.role)}/.menagerie/before-{token} on every host",
        f"to delete it when everything works: {plan_.etcd.command('forget')} --token {token}",
    )


def utc_now() -> datetime:
    return datetime.now(UTC)
