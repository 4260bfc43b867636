"""`etcd roll`: hosts of members taken to another payload while the cluster runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cli.asking import confirm, dry_run_of
from cli.etcd_verbs import EitherRoleArg
from cli.holding import hold, holds
from cli.options import ClusterArg, DryOpt, JsonOpt, YesOpt, examples
from cli.output import Steps, console, errors, print_json
from cli.specs import checked
from cluster.spec import Cluster, RoleName

if TYPE_CHECKING:
    from clients.access import Access
    from operations.etcds.roll import Plan


@examples(
    ("etcd roll jaguar --dry-run", "who runs an older payload?"),
    ("etcd roll jaguar", "events, then main; asks"),
    ("etcd roll jaguar events", "only hosts of events"),
    ("etcd roll jaguar --yes --json", "for a machine"),
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

    That is another release of etcd, other flags, or other programs of their hosts.
    Rolls one host after another, events first, leaders last. Leadership moves away
    first, and the next host waits until all members are healthy and caught up.
    Stops at the first failure. Idempotent: if interrupted, run it again.
    To roll back: restore the former spec or release, run `up`, then this verb.
    Exit code 2 if something prevents it; all reasons are listed at once.
    """
    one = checked(cluster)
    plan, access = _planned(one, role, quiet=as_json)
    if not plan.changes:
        _conclude(plan, "nothing to do: every host runs what its store holds", as_json=as_json)
        return
    if not as_json:
        _show(plan)
    if dry_run:
        count = len(plan.changes)
        _conclude(plan, f"would take {count} host{'s' if count > 1 else ''} to another payload", as_json=as_json)
        return
    if not (yes or as_json):
        again = plan.command.removeprefix("./menagerie ")
        names = ", ".join(change.host.name for change in plan.changes)
        confirm(f"{_cost(plan)} Roll {names}?", again, see=dry_run_of(again))
    _roll(one, access, plan, as_json=as_json)


def _planned(cluster: Cluster, role: RoleName | None, *, quiet: bool) -> tuple[Plan, Access]:
    from network.addresses import ROLES
    from operations import stack
    from operations.backups import newest_age, stale
    from operations.etcds.look import look, reach
    from operations.etcds.roll import plan

    steps = Steps(("cluster", "what runs, and what stands in the way"), quiet=quiet)
    with steps.step("cluster"):
        access = stack.access_to(cluster, steps.detail)
    with steps.step("what runs, and what stands in the way"):
        views = [look(reach(cluster, access, each)) for each in ROLES]
        age = newest_age(cluster, access)
        roles = ROLES if role is None else (role,)
        return plan(cluster.name, views, access.etcd_payloads, roles, lambda: stale(cluster.name, age)), access


def _show(plan: Plan) -> None:
    from operations.etcds.roll import listed

    for line in listed(plan.changes):
        errors.print(line, markup=False)


def _cost(plan: Plan) -> str:
    """What it costs. An etcd of one member has nobody to serve meanwhile."""
    alone = [view.etcd.role for view in plan.views if len(view.seen) == 1]
    stops = f" Etcd {' and '.join(alone)} has one member and serves nobody while that restarts." if alone else ""
    return f"Members restart one after another.{stops}"


def _roll(cluster: Cluster, access: Access, plan: Plan, *, as_json: bool) -> None:
    from operations.etcds.roll import roll as take

    steps = Steps(tuple(change.host.name for change in plan.changes), quiet=as_json)
    about = plan.roles[0] if len(plan.roles) == 1 else ""
    with hold(cluster, access, "etcd roll", about, repeatable=True) as operation:
        take(plan, operation, steps.step, steps.detail)
    count = len(plan.changes)
    _conclude(
        plan,
        "1 host runs what its store holds" if count == 1 else f"{count} hosts run what their stores hold",
        as_json=as_json,
    )


def _conclude(plan: Plan, line: str, *, as_json: bool) -> None:
    document: dict[str, Any] = {"cluster": plan.cluster, "hosts": [each.to_json() for each in plan.changes]}
    if as_json:
        print_json({**document, "told": [line]})
    else:
        console.print(line, markup=False)
