"""`etcd restore`: restore all members of an etcd from a snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from cli.asking import confirm, dry_run_of, refuse_unasked
from cli.etcd_verbs import RoleArg, conclude, operation_on, reached
from cli.etcd_view import as_document
from cli.holding import holds
from cli.options import ClusterArg, DryOpt, JsonOpt, YesOpt, examples
from cli.output import Steps, errors, note
from cli.specs import checked
from cluster.spec import Cluster, RoleName

if TYPE_CHECKING:
    from clients.access import Access
    from operations.etcds.snapshots import EtcdSnapshot

_API = "api"
_API_S = 60.0


@examples(
    ("etcd restore jaguar main --dry-run", "show what would be lost"),
    ("etcd restore jaguar main", "the newest good backup"),
    ("etcd restore jaguar main --snapshot 4f1c", "a backup by its ID"),
    ("etcd restore jaguar main --file main.db", "facts in main.db.json"),
    ("etcd restore jaguar events --to-empty", "discards all events"),
)
@holds()
def restore(
    cluster: ClusterArg,
    role: RoleArg,
    snapshot: Annotated[str, typer.Option("--snapshot", metavar="ID", help="Snapshot ID, or a unique prefix.")] = "",
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="Restore from a snapshot file on this machine.")
    ] = None,
    no_facts: Annotated[bool, typer.Option("--no-facts", help="Accept a FILE whose facts are unknown.")] = False,
    to_empty: Annotated[bool, typer.Option("--to-empty", help="Restore to an empty etcd. For events only.")] = False,
    accept_stale: Annotated[
        bool, typer.Option("--accept-stale", help="Accept a snapshot older than 24 hours.")
    ] = False,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Restore all members of an etcd from a backup. The etcd stops meanwhile.

    Every host first fetches, checks and prepares the snapshot while members still
    serve. Then the verb says what will be lost, and asks. The members' data is
    set aside on their disks.

    Idempotent: if interrupted, run it again. With --json, --yes is needed too.
    """
    loaded = checked(cluster)
    from operations.etcds import restore as verb
    from operations.etcds.look import reach, read_members

    access = reached(loaded, quiet=as_json)
    known = _snapshots(loaded, access, role, needed=not (file or to_empty))
    etcd, now = reach(loaded, access, role), verb.utc_now()
    steps = Steps((*verb.STEPS, _API), quiet=as_json)
    with operation_on(loaded, access, "restore", role, dry_run=dry_run) as operation:
        begun = operation.facts["snapshot"] if operation.has("swapping") else ""
        chosen = _chosen(role, snapshot or begun, file, known, no_facts, to_empty)
        plan = verb.plan(read_members(etcd), chosen, known, operation, now, accept_stale=accept_stale)
        for line in plan.warnings:
            errors.print(Text(line, style="yellow"))
        lost = plan.lost(now)
        if dry_run:
            conclude(as_json, {"snapshot": plan.chosen}, (f"would restore {plan.chosen}: {lost}",))
            return
        again = f"etcd restore {loaded.name} {role}"
        if not yes:
            refuse_unasked(again, to=f"restore {plan.chosen}", see=dry_run_of(again), as_json=as_json)
        verb.bring_beside(plan, operation, steps.step, steps.detail)
        if not yes and not operation.has("swapping"):
            confirm(
                f"Restore {plan.chosen}? {lost}, and the etcd stops meanwhile.",
                again,
                stopped="The running members were not changed.",
            )
        view = verb.change_over(plan, operation, steps.step, steps.detail)
        late = _late(access, steps)
        lines = (
            *verb.notes_after(plan, operation, view),
            *([f"{late}. See: ./menagerie status {loaded.name}"] if late else ()),
        )
        conclude(as_json, {"snapshot": plan.chosen, "api": late, **as_document(view)}, lines)


def _late(access: Access, steps: Steps) -> str:
    """Return which API servers do not serve what was restored; "" when all do.

    Not a failure: an API server may be down for another reason.
    """
    from clients.waiting import api_missing, late
    from operations.status import servers_down

    api = access.api(once=True)
    with steps.step(_API):
        return late(lambda: api_missing(api) or servers_down(access.outputs), _API_S, steps.detail)


def _snapshots(cluster: Cluster, access: Access, role: RoleName, *, needed: bool) -> tuple[EtcdSnapshot, ...]:
    """Return the snapshots in the bucket. needed: whether a bucket that cannot be read is an error."""
    from etcd.host.menagerie_etcd.repository import RepositoryError
    from operations.backups import NoBackupsError, snapshots

    try:
        return snapshots(cluster, access, role)
    except (NoBackupsError, RepositoryError) as error:
        if needed:
            raise
        note(f"not compared with backups: {error}")
        return ()


def _chosen(
    role: RoleName, snapshot: str, file: Path | None, known: tuple[EtcdSnapshot, ...], no_facts: bool, to_empty: bool
) -> EtcdSnapshot | None:
    from operations.etcds.restore import EMPTY
    from operations.etcds.snapshots import choose, from_file

    if to_empty or snapshot == EMPTY:
        if role != "events":
            raise typer.BadParameter("--to-empty is for events only: main holds every object of the cluster")
        return None
    if file:
        return from_file(file, role, no_facts=no_facts)
    return choose(known, snapshot)
