"""`etcd roll`: move hosts of members to another payload while the cluster runs."""

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
    from operations.etcds.roll import RollPlan


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
    plan, access = _planned(loaded, role, quiet=as_json)
    if not plan.changes:
        _conclude(plan, "nothing to do: every host runs the payload in its store", as_json=as_json)
        return
    if not as_json:
        _show(plan)
    if dry_run:
        count = len(plan.changes)
        _conclude(plan, f"would move {count} host{'s' if count > 1 else ''} to another payload", as_json=as_json)
        return
    if not (yes or as_json):
        again = plan.command.removeprefix("./menagerie ")
        names = ", ".join(change.host.name for change in plan.changes)
        confirm(f"{_cost(plan)} Roll {names}?", again, see=dry_run_of(again))
    _roll(loaded, access, plan, as_json=as_json)


def _planned(cluster: Cluster, role: RoleName | None, *, quiet: bool) -> tuple[RollPlan, Access]:
    from network.addresses import ROLES
    from operations import stack
    from operations.backups import newest_age, stale
    from operations.etcds.look import reach, read_members
    from operations.etcds.roll import plan

    steps = Steps(("cluster", "checks"), quiet=quiet)
    with steps.step("cluster"):
        access = stack.access_to(cluster, steps.detail)
    with steps.step("checks"):
        views = [read_members(reach(cluster, access, name)) for name in ROLES]
        age = newest_age(cluster, access)
        roles = ROLES if role is None else (role,)
        return plan(cluster.name, views, access.etcd_payloads, roles, lambda: stale(cluster.name, age)), access


def _show(plan: RollPlan) -> None:
    from operations.etcds.roll import listed

    for line in listed(plan.changes):
        errors.print(line, markup=False)


def _cost(plan: RollPlan) -> str:
    """Return what a roll costs: an etcd with one member does not serve meanwhile."""
    single = [view.etcd.role for view in plan.views if len(view.members) == 1]
    stops = f" Etcd {' and '.join(single)} has one member and does not serve while it restarts." if single else ""
    return f"Members restart one after another.{stops}"


def _roll(cluster: Cluster, access: Access, plan: RollPlan, *, as_json: bool) -> None:
    from operations.etcds.roll import roll as take

    steps = Steps(tuple(change.host.name for change in plan.changes), quiet=as_json)
    about = plan.roles[0] if len(plan.roles) == 1 else ""
    with hold(cluster, access, "etcd roll", about, repeatable=True) as operation:
        take(plan, operation, steps.step, steps.detail)
    count = len(plan.changes)
    _conclude(
        plan,
        "1 host runs the payload in its store" if count == 1 else f"{count} hosts run the payloads in their stores",
        as_json=as_json,
    )


def _conclude(plan: RollPlan, line: str, *, as_json: bool) -> None:
    document: dict[str, Any] = {"cluster": plan.cluster, "hosts": [change.to_json() for change in plan.changes]}
    if as_json:
        print_json({**document, "told": [line]})
    else:
        console.print(line, markup=False)
