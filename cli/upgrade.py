"""`upgrade`: what it takes, shows, asks, and prints."""

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
from cli.output import Steps, console, errors, print_json
from cli.specs import checked
from cluster.errors import RefusedError

if TYPE_CHECKING:
    from cluster.spec import Cluster
    from operations.rolling import Outcome
    from operations.upgrade.plan import Plan
    from operations.upgrade.run import Choices

_SHOWN = 10
_PARALLEL = 64


@examples(
    ("upgrade lab --dry-run", "only look"),
    ("upgrade lab", "asks, then all of it"),
    ("upgrade lab --control-plane-only", "workers another day"),
    ("upgrade lab --pool workers", "the workers of a pool"),
    ("upgrade lab --yes --json", "for a machine"),
)
@holds()
def upgrade(
    cluster: ClusterArg,
    pool: Annotated[
        list[str] | None,
        typer.Option(
            "--pool", metavar="POOL", help="Of workers at sites, only these pools; with commas, or given again."
        ),
    ] = None,
    control_plane_only: Annotated[
        bool, typer.Option("--control-plane-only", help="API servers and kube-proxy, and no kubelet.")
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

    Also moves workers to the containerd of this release, even if that is all.
    Upgrade: API servers one by one, kube-proxy, then workers: one first, then as many
    as their pools can spare, --parallel at most (default: 64), each drained.
    Rollback: the reverse. Write the former version into the spec and run this again.
    Stops at the first failure. Idempotent: if interrupted, run it again.
    --ready-timeout defaults to 15m. Exit code 2 if something prevents it; all reasons are
    listed at once. docs/how-to/upgrade.md has more.
    """
    one = checked(cluster)
    from operations.upgrade.run import Choices

    rules = drain_rules(drain_timeout, evict_unmanaged, keep_empty_dir, wait_for_jobs)
    pools = _pools(one, words(pool))
    at_once = parallel.at_least_one(len(one.host_list())) if parallel else _PARALLEL
    choices = Choices(pools, control_plane_only, rules, ready_timeout, at_once)
    _upgrade(one, choices, dry_run=dry_run, yes=yes or as_json, as_json=as_json)


def _pools(cluster: Cluster, named: tuple[str, ...]) -> tuple[str, ...] | None:
    known = [name for name, pool in cluster.spec.pools.items() if pool.site]
    if unknown := [name for name in named if name not in known]:
        raise typer.BadParameter(
            f"--pool: {', '.join(unknown)} is no pool at a site of {cluster.name}; there are: {', '.join(known) or 'none'}"
        )
    return named or None


def _upgrade(cluster: Cluster, choices: Choices, *, dry_run: bool, yes: bool, as_json: bool) -> None:
    from operations import lab, stack
    from operations.backups import newest_age
    from operations.readiness import refuse_unready
    from operations.upgrade.run import Upgrade, looked

    refuse_unready(cluster, stack.environment(cluster))
    if cluster.is_lab:
        lab.refuse_without_rights()
    steps = Steps(("cluster", "what runs, and what stands in the way"), quiet=as_json)
    with steps.step("cluster"):
        access = stack.access_to(cluster, steps.detail)
    with steps.step("what runs, and what stands in the way"):
        plan, found = looked(cluster, access, choices, steps.detail, newest_age(cluster, access))
    if not as_json:
        _show(plan)
    if found:
        listed = "\n  ".join(found)
        raise RefusedError(
            f"{plan.cluster} can't go to {plan.goal} yet; nothing was touched:\n  {listed}", code="upgrade-refused"
        )
    if not plan.is_done and not dry_run:
        if not yes:
            _confirm(plan)
        going = Steps(tuple(stage.value for stage in plan.stages), quiet=as_json)
        with hold(cluster, access, "upgrade", repeatable=True) as operation:
            Upgrade(cluster, access, plan, choices, operation, going, _teller(quiet=as_json)).run()
    _conclude(plan, dry_run=dry_run, as_json=as_json)


def _show(plan: Plan) -> None:
    from operations.upgrade.plan import Stage

    running = plan.running
    servers = ", ".join(f"{name} {version or 'silent'}" for name, version in running.hosts.items())
    errors.print(
        f"API servers: {servers or ', '.join(sorted(running.answers))}; kube-proxy: {running.proxy}", markup=False
    )
    counted = sorted(Counter(running.nodes.values()).items())
    errors.print(f"nodes: {', '.join(f'{count} with {programs}' for programs, count in counted)}", markup=False)
    of_stage = {Stage.SERVERS: plan.servers, Stage.REGION: plan.region, Stage.WORKERS: plan.workers}
    for number, stage in enumerate(plan.stages, 1):
        hosts = of_stage.get(stage, ())
        more = f" … {len(hosts)} in all" if len(hosts) > _SHOWN else ""
        what = f": {', '.join(hosts[:_SHOWN])}{more}" if hosts else ""
        to = plan.on_nodes if stage in (Stage.REGION, Stage.WORKERS) else plan.wanted
        errors.print(f"{number}. {stage.value} to {to}{what}", markup=False)
    for name, why in plan.unwell.items():
        errors.print(Text(f"{name}: {why}; the upgrade has begun, and does not wait for it", style="yellow"))
    for name in plan.by_the_cloud:
        errors.print(
            Text(f"{name}: its machine is the cloud's to replace; drain and delete it, and its group makes a new one"),
            style="yellow",
        )


def _confirm(plan: Plan) -> None:
    direction, again = "back to" if plan.is_back else "to", f"upgrade {plan.cluster}"
    question = f"Take {plan.cluster} {direction} {plan.goal}?"
    confirm(question, again, see=dry_run_of(again))


def _teller(*, quiet: bool) -> Callable[[Outcome], None]:
    from operations.rolling import State

    def tell(outcome: Outcome) -> None:
        good = outcome.state is State.DONE
        line = f"{'✓' if good else '✗'} {outcome.host}  {outcome.seconds:.0f} s  {outcome.text}".rstrip()
        errors.print(Text(line, style="green" if good else "red"))

    return (lambda _: None) if quiet else tell


def _conclude(plan: Plan, *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        print_json({**plan.to_json(), "done": plan.is_done or not dry_run})
        return
    if plan.is_done:
        told = f"all that is asked about runs {plan.goal}"
    elif dry_run:
        told = f"nothing stands in the way of {plan.goal}; nothing was touched"
    else:
        told = f"{'back at' if plan.is_back else 'now'} {plan.goal}"
    left = "; other workers still run another version" if plan.limited and not dry_run else ""
    console.print(f"{plan.cluster}: {told}{left}", markup=False)
