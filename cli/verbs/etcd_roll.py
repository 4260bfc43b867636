"""`etcd roll`: its arguments."""

from __future__ import annotations

from cli.etcd_options import EitherRoleArg
from cli.examples import examples
from cli.holding import holds
from cli.options import ClusterArg, DryOpt, JsonOpt, YesOpt
from cli.specs import checked


@examples(
    ("etcd roll jaguar --dry-run", "show hosts with an older payload"),
    ("etcd roll jaguar", "ask, then roll events and main"),
    ("etcd roll jaguar events", "only hosts of events"),
    ("etcd roll jaguar --yes --json", "for a program"),
)
@holds()
def roll(
    cluster: ClusterArg,
    role: EitherRoleArg = None,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Move running members to the payload that `up` put into their stores.

    A payload brings another release of etcd, other flags, or other programs.
    Rolls one host at a time, events first, leaders last. A leader hands over
    first. The next host waits until all members are healthy and caught up. Stops
    at the first failure.

    Idempotent: if interrupted, run it again. To roll back: restore the former
    spec or release, run `up`, then this verb. Exit code 2 if something prevents
    it; all reasons are listed at once.
    """
    loaded = checked(cluster)
    from cli.actions import etcd_roll

    etcd_roll.roll(loaded, role, dry_run=dry_run, yes=yes or as_json, as_json=as_json)
