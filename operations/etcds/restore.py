"""Restore an etcd from a snapshot: all members from the same bytes, or none.

Until members are stopped nothing that runs is touched. From then on what each had is kept aside on its disk, and a run
that fails before the first member has its new data starts them all again as they were.
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
from operations.etcds.look import Etcd, View, look, mb, of_all
from operations.etcds.snapshots import EtcdRefusedError, Snapshot, ago, better, refuse_wrong
from operations.record.journal import Journal, Report, Step

BUMP = 10**9
"""Revisions that are skipped: etcd.io's own example, far above what any client may have seen after the snapshot."""
STEPS = ("fetch", "prepare", "stop", "swap", "start", "healthy")
HEALTHY_S = 300
PIECE_BYTES = 2 * 2**20
"""Of a snapshot that is handed to agents: with the base64 less than a body that these take."""
EMPTY = "empty"
"""The id that stands for a snapshot of an etcd that holds nothing yet."""
_ROOM = 256 * 2**20
"""Beside twice the snapshot, as in `menagerie_etcd.snapshots`."""


@dataclass(frozen=True)
class Plan:
    """What a restore would do. snapshot: None for an empty etcd. warnings: sentences."""

    etcd: Etcd
    snapshot: Snapshot | None
    known: tuple[Snapshot, ...]
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
        """Revisions to skip, so that all that clients have seen lies in the past."""
        return max(self.revision_now - self.revision, 0) + BUMP

    def lost(self, now: datetime) -> str:
        """What will be gone, as a sentence."""
        etcd = self.etcd.role
        if self.snapshot is None:
            return f"every key of etcd {etcd} will be lost; it is at revision {self.revision_now or 'unknown'}"
        since = f"all that was written to etcd {etcd} in the last {ago(now - self.snapshot.time)} will be lost"
        if self.revision_now and self.snapshot.revision:
            return f"{since}: {max(self.revision_now - self.revision, 0)} revisions, from {self.revision}"
        return f"{since}; no member says how many revisions that are"


def plan(
    view: View,
    snapshot: Snapshot | None,
    known: Sequence[Snapshot],
    operation: Journal,
    now: datetime,
    *,
    accept_stale: bool = False,
) -> Plan:
    """The restore, or EtcdRefusedError: foreign or old snapshots, agents that don't answer, no room. Touches nothing."""
    etcd = view.etcd
    ids = frozenset(status.cluster_id for _, status in view.answering)
    warnings: tuple[str, ...] = ()
    if operation.has("swapping"):
        _refuse_another(etcd, snapshot, operation)
        ids = frozenset(operation.facts["old_ids"].split())
    elif snapshot:
        had = ids | {each.cluster_id for each in known if each.cluster_id}
        warnings = refuse_wrong(snapshot, etcd.cluster.name, etcd.role, had, now, accept_stale=accept_stale)
    silent = [each.agent_error for each in view.seen if each.agent_error]
    if silent:
        raise EtcdRefusedError("every member's agent is needed. Nothing was changed.\n  " + "\n  ".join(silent))
    if not operation.has("swapping"):
        _refuse_without_room(view, snapshot.size if snapshot else 0)
    seen = max([view.revision, *(each.revision or 0 for each in known)])
    return Plan(etcd, snapshot, tuple(known), seen, ids, warnings)


def _refuse_another(etcd: Etcd, snapshot: Snapshot | None, operation: Journal) -> None:
    begun, chosen = operation.facts["snapshot"], snapshot.id if snapshot else EMPTY
    if chosen != begun:
        how = "--to-empty" if begun == EMPTY else f"--snapshot {begun} (or --file)"
        raise EtcdRefusedError(
            f"a restore of etcd {etcd.role} from {begun} was cut short while members were stopped. "
            f"Finish that one first: {etcd.command('restore')} {how}"
        )


def _refuse_without_room(view: View, size: int) -> None:
    need = 2 * size + _ROOM
    full = [
        f"{each.name}: {mb(each.agent['disk_free'])} free in {each.agent['data_dir']}, a restore needs about {mb(need)}"
        for each in view.seen
        if each.agent["disk_free"] < need
    ]
    if full:
        way = (
            f"Nothing was changed. What earlier restores kept goes with: {view.etcd.command('forget')} --older-than 0s"
        )
        raise EtcdRefusedError("\n  ".join((*full, way)))


def begin(made: Plan, operation: Journal, report: Report) -> None:
    """The token and the bump, once for all runs of the operation.

    Before any member is stopped, a run from another snapshot begins anew. So does one to an empty etcd that was cut short
    before all had the same bytes: no two empty snapshots are the same.
    """
    before = operation.facts.get("token", "")
    whole = made.snapshot is not None or operation.facts.get("fetched") == before
    if operation.has("begun") and operation.facts["snapshot"] == made.chosen and whole:
        return
    if before:
        of_all(made.etcd, lambda agent: agent.act("forget", report, token=before))
    operation.done(
        "begun",
        token=f"restore-{secrets.token_hex(4)}",
        bump=str(made.bump),
        snapshot=made.chosen,
        old_ids=" ".join(sorted(made.old_cluster_ids)),
    )


def bring_beside(made: Plan, operation: Journal, step: Step, report: Report) -> None:
    """Fetch and prepare on all members; they serve on. EtcdRefusedError where the snapshot is not whole."""
    begin(made, operation, report)
    token, bump = operation.facts["token"], int(operation.facts["bump"])
    with step("fetch"):
        fetched = operation.facts.get("fetched") == token
        if not fetched or not (made.snapshot is None or operation.has("swapping")):
            _fetch(made, token, report)
            operation.done("fetch", fetched=token)
    with step("prepare"):
        told = {
            "initial_cluster": ",".join(f"{each.name}={each.peer_url}" for each in made.etcd.members),
            "initial_cluster_token": f"{made.etcd.cluster.name}-{made.etcd.role}-{token}",
            "bump_revision": bump,
        }
        of_all(made.etcd, lambda agent: agent.act("prepare", report, token=token, **told))


def change_over(made: Plan, operation: Journal, step: Step, report: Report) -> View:
    """Stop, swap, start; the members as they are then, with a new cluster id. They are down meanwhile."""
    etcd, token = made.etcd, operation.facts["token"]
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
        return _wait_until_healthy(made, int(operation.facts["bump"]), report)


def _fetch(made: Plan, token: str, report: Report) -> None:
    try:
        if made.snapshot is None:
            _fetch_empty(made.etcd, token, report)
        else:
            _fetch_one(made.etcd, made.snapshot, token, report)
    except AgentError as error:
        if made.snapshot is None or not any(word in str(error) for word in _BAD):
            raise
        raise EtcdRefusedError(
            f"snapshot {made.snapshot.id}: {error}.{better(made.known, made.snapshot)}. Nothing was changed."
        ) from None


_BAD = ("hash mismatch", "another revision", "truncated", "damaged", "etcdutl")


def _fetch_empty(etcd: Etcd, token: str, report: Report) -> None:
    """All from the one that the first member made."""
    made = base64.b64decode(next(iter(etcd.agents.values())).act("empty-snapshot")["inline"])

    def bring(agent: AgentClient) -> None:
        _hand_over(agent, io.BytesIO(made), len(made), token, report)
        agent.act("fetch", report, token=token, size=len(made))

    of_all(etcd, bring)


def _fetch_one(etcd: Etcd, snapshot: Snapshot, token: str, report: Report) -> None:
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
    """Piece by piece, from where an earlier run was cut off."""
    taken = 0
    while taken < size:
        file.seek(taken)
        if not (piece := file.read(PIECE_BYTES)):
            raise EtcdRefusedError(
                f"the snapshot became shorter while it was read: {taken} of {size} bytes. Nothing was changed."
            )
        body = {"size": size, "offset": taken, "piece": base64.b64encode(piece).decode()}
        taken = int(agent.act("take", report, token=token, **body)["taken"])
        report(f"{agent.member}: {mb(taken)} of {mb(size)}")


def _stop(etcd: Etcd, token: str, operation: Journal, report: Report) -> None:
    """All of them. Where one can't be stopped and none has other data yet, they are started again as they were."""
    try:
        of_all(etcd, lambda agent: agent.act("stop", report, token=token))
    except AgentError as failed:
        if operation.has("swapping"):
            raise
        for agent in etcd.agents.values():
            try:
                agent.act("start", report)
            except AgentError as error:
                failed.add_note(f"  and not started again: {error}")
        raise


def _wait_until_healthy(made: Plan, bump: int, report: Report) -> View:
    views: list[View] = []

    def missing() -> str:
        view = look(made.etcd)
        views.append(view)
        ailing = [f"{each.name}: {each.ailment}" for each in view.seen if not each.healthy]
        if ailing:
            return "; ".join(ailing)
        ids = {status.cluster_id for _, status in view.answering}
        if len(ids) != 1 or ids & made.old_cluster_ids:
            return f"members are of the etcds {', '.join(sorted(ids))}"
        low = [each.name for each, status in view.answering if status.revision < made.revision + bump]
        return f"{', '.join(low)} below revision {made.revision + bump}" if low else ""

    wait_until(missing, HEALTHY_S, report)
    return views[-1]


def told(made: Plan, operation: Journal, view: View) -> tuple[str, ...]:
    """What an operator should know afterwards, as sentences."""
    token, bump = operation.facts["token"], int(operation.facts["bump"])
    (cluster_id,) = {status.cluster_id for _, status in view.answering}
    return (
        f"etcd {made.etcd.role} is healthy, with cluster id {cluster_id}",
        f"revision raised from {made.revision} to {made.revision + bump} so that watchers can't read the past",
        f"what the members had is kept in {data_dir(made.etcd.cluster, made.etcd.role)}/.menagerie/before-{token} on every host",
        f"to remove it, once all is well: {made.etcd.command('forget')} --token {token}",
    )


def utc_now() -> datetime:
    return datetime.now(UTC)
