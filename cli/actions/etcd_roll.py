"""`etcd roll`: move hosts of members to another payload while the cluster runs."""

from __future__ import annotations

from typing import Any

from cli.actions.holding import hold
from cli.asking import confirm, dry_run_of
from cli.output import Steps, console, errors, print_json
from clients.access import Access
from cluster.spec import Cluster, RoleName
from network.addresses import ROLES
from operations import backups, stack
from operations.etcds import look as looking
from operations.etcds import roll as rolling
from operations.etcds.roll import RollPlan


def roll(cluster: Cluster, role: RoleName | None, *, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Roll the hosts of one etcd, or of both, whose payload is not the one in their store."""
    plan, access = _planned(cluster, role, quiet=as_json)
    if not plan.changes:
        _conclude(plan, "nothing to do: every host runs the payload in its store", as_json=as_json)
        return
    if not as_json:
        _show(plan)
    if dry_run:
        count = len(plan.changes)
        _conclude(plan, f"would move {count} host{'s' if count > 1 else ''} to another payload", as_json=as_json)
        return
    if not yes:
        again = plan.command.removeprefix("./menagerie ")
        names = ", ".join(change.host.name for change in plan.changes)
        confirm(f"{_cost(plan)} Roll {names}?", again, see=dry_run_of(again))
    _roll(cluster, access, plan, as_json=as_json)


def _planned(cluster: Cluster, role: RoleName | None, *, quiet: bool) -> tuple[RollPlan, Access]:
    steps = Steps(("cluster", "checks"), quiet=quiet)
    with steps.step("cluster"):
        access = stack.access_to(cluster, steps.detail)
    with steps.step("checks"):
        views = [looking.read_members(looking.reach(cluster, access, name)) for name in ROLES]
        age = backups.newest_age(cluster, access)
        roles = ROLES if role is None else (role,)
        return rolling.plan(
            cluster.name, views, access.etcd_payloads, roles, lambda: backups.stale(cluster.name, age)
        ), access


def _show(plan: RollPlan) -> None:
    for line in rolling.listed(plan.changes):
        errors.print(line, markup=False)


def _cost(plan: RollPlan) -> str:
    """Return what a roll costs: an etcd with one member does not serve meanwhile."""
    single = [view.etcd.role for view in plan.views if len(view.members) == 1]
    stops = f" Etcd {' and '.join(single)} has one member and does not serve while it restarts." if single else ""
    return f"Members restart one after another.{stops}"


def _roll(cluster: Cluster, access: Access, plan: RollPlan, *, as_json: bool) -> None:
    steps = Steps(tuple(change.host.name for change in plan.changes), quiet=as_json)
    about = plan.roles[0] if len(plan.roles) == 1 else ""
    with hold(cluster, access, "etcd roll", about, repeatable=True) as operation:
        rolling.roll(plan, operation, steps.step, steps.detail)
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
