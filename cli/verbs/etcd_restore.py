"""`etcd restore`: its arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.etcd_options import RoleArg
from cli.examples import examples
from cli.holding import holds
from cli.options import ClusterArg, DryOpt, JsonOpt, YesOpt
from cli.specs import checked


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
    from cli.actions import etcd_restore

    source = etcd_restore.Source(snapshot, file, no_facts, to_empty, accept_stale)
    etcd_restore.restore(loaded, role, source, dry_run=dry_run, yes=yes, as_json=as_json)
