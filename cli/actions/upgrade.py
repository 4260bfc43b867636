"""`upgrade`: its plan, question and output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from rich.text import Text

from cli.actions.holding import hold
from cli.asking import confirm, dry_run_of
from cli.output import Steps, console, errors, print_json
from cli.views.outcomes import print_outcome
from cluster.errors import RefusedError
from cluster.spec import Cluster
from operations import backups, lab, stack
from operations.readiness import refuse_unready
from operations.rolling import RollOutcome
from operations.upgrade import run as upgrading
from operations.upgrade.plan import UpgradePlan, UpgradeStage
from operations.upgrade.run import Choices

__all__ = ["Choices", "upgrade"]

_SHOWN = 10


def upgrade(cluster: Cluster, choices: Choices, *, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Upgrade the cluster, or roll it back. Errors: raises RefusedError with all reasons against it."""
    refuse_unready(cluster, stack.environment(cluster))
    if cluster.is_lab:
        lab.refuse_without_rights()
    steps = Steps(("cluster", "checks"), quiet=as_json)
    with steps.step("cluster"):
        access = stack.access_to(cluster, steps.detail)
    with steps.step("checks"):
        plan, reasons = upgrading.review(cluster, access, choices, steps.detail, backups.newest_age(cluster, access))
    if not as_json:
        _show(plan)
    if reasons:
        listed = "\n  ".join(reasons)
        raise RefusedError(
            f"{plan.cluster} cannot move to {plan.goal} yet. Nothing was changed.\n  {listed}", code="upgrade-refused"
        )
    if not plan.is_done and not dry_run:
        if not yes:
            _confirm(plan)
        tell: Callable[[RollOutcome], None] = (lambda _: None) if as_json else print_outcome
        stages = Steps(tuple(stage.value for stage in plan.stages), quiet=as_json)
        with hold(cluster, access, "upgrade", repeatable=True) as operation:
            upgrading.Upgrade(cluster, access, plan, choices, operation, stages, tell).run()
    _conclude(plan, dry_run=dry_run, as_json=as_json)


def _show(plan: UpgradePlan) -> None:
    running = plan.running
    servers = ", ".join(f"{name} {version or 'silent'}" for name, version in running.hosts.items())
    errors.print(
        f"API servers: {servers or ', '.join(sorted(running.answers))}; kube-proxy: {running.proxy}", markup=False
    )
    counts = sorted(Counter(running.nodes.values()).items())
    errors.print(f"nodes: {', '.join(f'{count} with {programs}' for programs, count in counts)}", markup=False)
    of_stage = {
        UpgradeStage.SERVERS: plan.servers,
        UpgradeStage.REGION: plan.region,
        UpgradeStage.WORKERS: plan.workers,
    }
    for number, stage in enumerate(plan.stages, 1):
        hosts = of_stage.get(stage, ())
        rest = f" … {len(hosts)} in total" if len(hosts) > _SHOWN else ""
        names = f": {', '.join(hosts[:_SHOWN])}{rest}" if hosts else ""
        to = plan.on_nodes if stage in (UpgradeStage.REGION, UpgradeStage.WORKERS) else plan.target
        errors.print(f"{number}. {stage.value} to {to}{names}", markup=False)
    for name, why in plan.unwell.items():
        errors.print(Text(f"{name}: {why}; the upgrade has started and does not wait for it", style="yellow"))
    for name in plan.by_the_cloud:
        errors.print(
            Text(f"{name}: the cloud replaces its machine: drain and delete it, and its group creates a new one"),
            style="yellow",
        )


def _confirm(plan: UpgradePlan) -> None:
    direction, again = "back to" if plan.is_back else "to", f"upgrade {plan.cluster}"
    question = f"Move {plan.cluster} {direction} {plan.goal}?"
    confirm(question, again, see=dry_run_of(again))


def _conclude(plan: UpgradePlan, *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        print_json({**plan.to_json(), "done": plan.is_done or not dry_run})
        return
    if plan.is_done:
        result = f"everything selected already runs {plan.goal}"
    elif dry_run:
        result = f"nothing prevents {plan.goal}; nothing was changed"
    else:
        result = f"{'back at' if plan.is_back else 'now'} {plan.goal}"
    left = "; other workers still run another version" if plan.limited and not dry_run else ""
    console.print(f"{plan.cluster}: {result}{left}", markup=False)
