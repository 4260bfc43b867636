"""`etcd restore`: all members of an etcd put back to a snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from cli.asking import confirm, dry_run_of, refuse_unasked
from cli.etcd_verbs import RoleArg, conclude, operation_on, reached
from cli.etcd_view import told
from cli.holding import holds
from cli.options import ClusterArg, DryOpt, JsonOpt, YesOpt, examples
from cli.output import Steps, errors, note
from cli.specs import checked
from cluster.spec import Cluster, RoleName

if TYPE_CHECKING:
    from clients.access import Access
    from operations.etcds.snapshots import Snapshot

_API = "api"
_API_S = 60.0


@examples(
    ("etcd restore jaguar main --dry-run", "what would be lost?"),
    ("etcd restore jaguar main", "the newest good backup; asks"),
    ("etcd restore jaguar main --snapshot 4f1c", "one by its ID"),
    ("etcd restore jaguar main --file main.db", "facts in main.db.json"),
    ("etcd restore jaguar events --to-empty", "events may be lost"),
)
@holds()
def restore(
    cluster: ClusterArg,
    role: RoleArg,
    snapshot: Annotated[str, typer.Option("--snapshot", metavar="ID", help="Snapshot ID, or a unique prefix.")] = "",
    file: Annotated[Path | None, typer.Option("--file", metavar="FILE", help="A snapshot on this machine.")] = None,
    no_facts: Annotated[bool, typer.Option("--no-facts", help="Accept a FILE without known facts.")] = False,
    to_empty: Annotated[bool, typer.Option("--to-empty", help="Start with an empty etcd; only events.")] = False,
    accept_stale: Annotated[
        bool, typer.Option("--accept-stale", help="Accept a snapshot older than 24 hours.")
    ] = False,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Restore all members of an etcd from a backup. Stops them meanwhile.

    Every host first fetches, checks and prepares the snapshot while members still
    serve. Then the verb says what will be lost, and asks. The data of members is
    set aside on their disks. Idempotent: if interrupted, run it again.
    With --json, --yes is needed too.
    """
    one = checked(cluster)
    from operations.etcds import restore as verb
    from operations.etcds.look import look, reach

    access = reached(one, quiet=as_json)
    known = _snapshots(one, access, role, needed=not (file or to_empty))
    etcd, now = reach(one, access, role), verb.utc_now()
    steps = Steps((*verb.STEPS, _API), quiet=as_json)
    with operation_on(one, access, "restore", role, dry_run=dry_run) as operation:
        begun = operation.facts["snapshot"] if operation.has("swapping") else ""
        chosen = _chosen(role, snapshot or begun, file, known, no_facts, to_empty)
        made = verb.plan(look(etcd), chosen, known, operation, now, accept_stale=accept_stale)
        for line in made.warnings:
            errors.print(Text(line, style="yellow"))
        lost = made.lost(now)
        if dry_run:
            conclude(as_json, {"snapshot": made.chosen}, (f"would restore {made.chosen}: {lost}",))
            return
        again = f"etcd restore {one.name} {role}"
        if not yes:
            refuse_unasked(again, to=f"restore {made.chosen}", see=dry_run_of(again), as_json=as_json)
        verb.bring_beside(made, operation, steps.step, steps.detail)
        if not yes and not operation.has("swapping"):
            confirm(
                f"Restore {made.chosen}? {lost}, and the etcd stops for it.", again, stopped="what runs was not touched"
            )
        view = verb.change_over(made, operation, steps.step, steps.detail)
        late = _late(access, steps)
        lines = (*verb.told(made, operation, view), *([f"{late}. See: ./menagerie status {one.name}"] if late else ()))
        conclude(as_json, {"snapshot": made.chosen, "api": late, **told(view)}, lines)


def _late(access: Access, steps: Steps) -> str:
    """Which API servers do not serve what was restored, "" once all do. No failure: one may be down for another reason."""
    from clients.waiting import api_missing, late
    from operations.status import servers_down

    one = access.api(once=True)
    with steps.step(_API):
        return late(lambda: api_missing(one) or servers_down(access.outputs), _API_S, steps.detail)


def _snapshots(cluster: Cluster, access: Access, role: RoleName, *, needed: bool) -> tuple[Snapshot, ...]:
    """Those of the bucket. needed: whether it is an error that it can't be read."""
    from etcd.host.menagerie_etcd.repository import RepositoryError
    from operations.backups import NoBackupsError, snapshots

    try:
        return snapshots(cluster, access, role)
    except (NoBackupsError, RepositoryError) as error:
        if needed:
            raise
        note(f"no backup is compared with: {error}")
        return ()


def _chosen(
    role: RoleName, snapshot: str, file: Path | None, known: tuple[Snapshot, ...], no_facts: bool, to_empty: bool
) -> Snapshot | None:
    from operations.etcds.restore import EMPTY
    from operations.etcds.snapshots import choose, from_file

    if to_empty or snapshot == EMPTY:
        if role != "events":
            raise typer.BadParameter("--to-empty is for events: main holds every object of the cluster")
        return None
    if file:
        return from_file(file, role, no_facts=no_facts)
    return choose(known, snapshot)
