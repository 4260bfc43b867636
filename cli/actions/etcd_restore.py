"""`etcd restore`: restore all members of an etcd from a snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer
from rich.text import Text

from cli.actions.etcd import conclude, operation_on, reached
from cli.asking import confirm, dry_run_of, refuse_unasked
from cli.output import Steps, errors, note
from cli.views.etcd import as_document
from clients.access import Access
from clients.waiting import api_missing, late
from cluster.spec import Cluster, RoleName
from etcd.host.menagerie_etcd.repository import RepositoryError
from operations.backups import NoBackupsError, snapshots
from operations.etcds import look as looking
from operations.etcds import restore as restoring
from operations.etcds.snapshots import EtcdSnapshot, choose, from_file
from operations.status.balancer import servers_down

_API = "api"
_API_S = 60.0


@dataclass(frozen=True)
class Source:
    """What to restore. snapshot: its ID or a unique prefix; "" for the newest good backup, unless `file` or `to_empty`."""

    snapshot: str
    file: Path | None
    no_facts: bool
    to_empty: bool
    accept_stale: bool


def restore(cluster: Cluster, role: RoleName, source: Source, *, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Restore an etcd: fetch and check the snapshot on every host, say what is lost, ask, then change over."""
    access = reached(cluster, quiet=as_json)
    known = _snapshots(cluster, access, role, needed=not (source.file or source.to_empty))
    etcd, now = looking.reach(cluster, access, role), restoring.utc_now()
    steps = Steps((*restoring.STEPS, _API), quiet=as_json)
    with operation_on(cluster, access, "restore", role, dry_run=dry_run) as operation:
        begun = operation.facts["snapshot"] if operation.has("swapping") else ""
        chosen = _chosen(role, source, source.snapshot or begun, known)
        plan = restoring.plan(
            looking.read_members(etcd), chosen, known, operation, now, accept_stale=source.accept_stale
        )
        for line in plan.warnings:
            errors.print(Text(line, style="yellow"))
        lost = plan.lost(now)
        if dry_run:
            conclude(as_json, {"snapshot": plan.chosen}, (f"would restore {plan.chosen}: {lost}",))
            return
        again = f"etcd restore {cluster.name} {role}"
        if not yes:
            refuse_unasked(again, to=f"restore {plan.chosen}", see=dry_run_of(again), as_json=as_json)
        restoring.bring_beside(plan, operation, steps.step, steps.detail)
        if not yes and not operation.has("swapping"):
            confirm(
                f"Restore {plan.chosen}? {lost}, and the etcd stops meanwhile.",
                again,
                stopped="The running members were not changed.",
            )
        view = restoring.change_over(plan, operation, steps.step, steps.detail)
        late = _late(access, steps)
        lines = (
            *restoring.notes_after(plan, operation, view),
            *([f"{late}. See: ./menagerie status {cluster.name}"] if late else ()),
        )
        conclude(as_json, {"snapshot": plan.chosen, "api": late, **as_document(view)}, lines)


def _late(access: Access, steps: Steps) -> str:
    """Return which API servers do not serve what was restored; "" when all do.

    Not a failure: an API server may be down for another reason.
    """
    api = access.api(once=True)
    with steps.step(_API):
        return late(lambda: api_missing(api) or servers_down(access.outputs), _API_S, steps.detail)


def _snapshots(cluster: Cluster, access: Access, role: RoleName, *, needed: bool) -> tuple[EtcdSnapshot, ...]:
    """Return the snapshots in the bucket. needed: whether a bucket that cannot be read is an error."""
    try:
        return snapshots(cluster, access, role)
    except (NoBackupsError, RepositoryError) as error:
        if needed:
            raise
        note(f"not compared with backups: {error}")
        return ()


def _chosen(role: RoleName, source: Source, snapshot: str, known: tuple[EtcdSnapshot, ...]) -> EtcdSnapshot | None:
    """Return the snapshot to restore; None for an empty etcd."""
    if source.to_empty or snapshot == restoring.EMPTY:
        if role != "events":
            raise typer.BadParameter("--to-empty is for events only: main holds every object of the cluster")
        return None
    if source.file:
        return from_file(source.file, role, no_facts=source.no_facts)
    return choose(known, snapshot)
