"""`etcd recover-space` and `defragment`: their arguments."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.etcd_options import RoleArg
from cli.examples import examples
from cli.holding import holds
from cli.options import ClusterArg, DryOpt, JsonOpt, YesOpt
from cli.specs import checked


@examples(
    ("etcd recover-space jaguar events --dry-run", "show sizes"),
    ("etcd recover-space jaguar events", "ask, compact, defragment"),
)
@holds()
def recover_space(
    cluster: ClusterArg,
    role: RoleArg,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Recover an etcd that is at its quota, so that it accepts writes again.

    Compacts the history of keys, defragments one member at a time, the leader
    last, and clears the alarm. Idempotent: if interrupted, run it again.
    """
    loaded = checked(cluster)
    from cli.actions import etcd_space

    etcd_space.recover(loaded, role, dry_run=dry_run, yes=yes or as_json, as_json=as_json)


@examples(
    ("etcd defragment jaguar main", "members with space to gain"),
    ("etcd defragment jaguar main --force", "all members"),
)
@holds()
def defragment(
    cluster: ClusterArg,
    role: RoleArg,
    force: Annotated[bool, typer.Option("--force", help="Include members with little space to gain.")] = False,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Return free space in databases to the disks.

    Defragments members with more than 30 % of their database free, one at a time,
    the leader last. A member does not serve while it defragments. Compacts
    nothing.
    """
    loaded = checked(cluster)
    from cli.actions import etcd_space

    etcd_space.defragment(loaded, role, force=force, dry_run=dry_run, yes=yes or as_json, as_json=as_json)
