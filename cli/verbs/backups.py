"""`etcd backup`: its arguments."""

from __future__ import annotations

from cli.etcd_options import EitherRoleArg
from cli.examples import examples
from cli.options import ClusterArg, DryOpt, JsonOpt
from cli.specs import checked


@examples(
    ("etcd backup jaguar", "both etcds, now"),
    ("etcd backup jaguar main", "before a risky change"),
    ("etcd backup jaguar --dry-run", "show which hosts would make them"),
)
def backup(cluster: ClusterArg, role: EitherRoleArg = None, dry_run: DryOpt = False, as_json: JsonOpt = False) -> None:
    """Back up one or both etcds now, and wait until the backup is in the bucket.

    A member's host makes the backup, as it does automatically once per interval.
    Drills test backups on their own schedule. `status CLUSTER backups` lists all
    backups.
    """
    loaded = checked(cluster)
    from cli.actions import backups

    backups.backup(loaded, role, dry_run=dry_run, as_json=as_json)
