"""`upgrade`: its arguments, question and output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from cli.asking import confirm, dry_run_of
from cli.holding import hold, holds
from cli.options import (
    ClusterArg,
    DrainTimeoutOpt,
    DryOpt,
    EvictUnmanagedOpt,
    JsonOpt,
    KeepEmptyDirOpt,
    ParallelOpt,
    ReadyTimeoutOpt,
    WaitForJobsOpt,
    YesOpt,
    drain_rules,
    examples,
    words,
)
from cli.outcomes import print_outcome
from cli.output import Steps, console, errors, print_json
from cli.specs import checked
from cluster.errors import RefusedError

if TYPE_CHECKING:
    from cluster.spec import Cluster
    from operations.rolling import RollOutcome
    from operations.upgrade.plan import UpgradePlan
    from operations.upgrade.run import Choices

_SHOWN = 10
_PARALLEL = 64


@examples(
    ("upgrade lab --dry-run", "show the stages"),
    ("upgrade lab", "ask, then upgrade everything"),
    ("upgrade lab --control-plane-only", "leave workers for later"),
    ("upgrade lab --pool workers", "of workers, only one pool"),
    ("upgrade lab --yes --json", "for a program"),
)
@holds()
def upgrade(
    cluster: ClusterArg,
    pool: Annotated[
        list[str] | None,
        typer.Option(
            "--pool", metavar="POOL", help="Of workers at sites, only these pools; separated by commas, or repeated."
        ),
    ] = None,
    control_plane_only: Annotated[
        bool, typer.Option("--control-plane-only", help="Upgrade API servers and kube-proxy, but no kubelet.")
    ] = False,
    parallel: ParallelOpt = None,
    drain_timeout: DrainTimeoutOpt = 900.0,
    ready_timeout: ReadyTimeoutOpt = 900.0,
    evict_unmanaged: EvictUnmanagedOpt = False,
    keep_empty_dir: KeepEmptyDirOpt = False,
    wait_for_jobs: WaitForJobsOpt = False,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Upgrade a running cluster to kubernetes.version of its spec, or roll it back.

    Also moves workers to this release's containerd, even if nothing else changes.
    Upgrades API servers one by one, then kube-proxy, then workers: a single
    worker first, then as many as their pools can spare, at most --parallel
    (default: 64). Each is drained. Rolls back in reverse order: write the former
    version into the spec and run this again. Stops at the first failure.

    Idempotent: if interrupted, run it again. --ready-timeout defaults to 15m.
    Exit code 2 if something prevents it; all reasons are listed at once.
    docs/how-to/upgrade.md has more.
    """
    loaded = checked(cluster)
    from operations.upgrade.run import Choices

    rules = drain_rules(drain_timeout, evict_unmanaged, keep_empty_dir, wait_for_jobs)
    pools = _pools(loaded, words(pool))
    at_once = parallel.at_least_one(len(loaded.host_list())) if parallel else _PARALLEL
    choices = Choices(pools, control_plane_only, rules, ready_timeout, at_once)
    _upgrade(loaded, choices, dry_run=dry_run, yes=yes or as_json, as_json=as_json)


def _pools(cluster: Cluster, names: tuple[str, ...]) -> tuple[str, ...] | None:
    existing = [name for name, pool in cluster.spec.pools.items() if pool.site]
    if unknown := [name for name in names if name not in existing]:
        raise typer.BadParameter(
            f"--pool: {cluster.name} has no pool {', '.join(unknown)} at a site; it has: {', '.join(existing) or 'none'}"
        )
    return names or None


def _upgrade(cluster: Cluster, choices: Choices, *, dry_run: bool, yes: bool, as_json: bool) -> None:
    from operations import lab, stack
    from operations.backups import newest_age
    from operations.readiness import refuse_unready
    from operations.upgrade.run import Upgrade, review

    refuse_unready(cluster, stack.environment(cluster))
    if cluster.is_lab:
        lab.refuse_without_rights()
    steps = Steps(("cluster", "checks"), quiet=as_json)
    with steps.step("cluster"):
        access = stack.access_to(cluster, steps.detail)
    with steps.step("checks"):
        plan, reasons = review(cluster, access, choices, steps.detail, newest_age(cluster, access))
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
            Upgrade(cluster, access, plan, choices, operation, stages, tell).run()
    _conclude(plan, dry_run=dry_run, as_json=as_json)


def _show(plan: UpgradePlan) -> None:
    from operations.upgrade.plan import UpgradeStage

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
        to = plan.on_nodes if stage in (UpgradeStage.REGION, UpgradeStage.WORKERS) else plan.wanted
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
