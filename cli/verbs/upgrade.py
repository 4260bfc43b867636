"""`upgrade`: its arguments."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.examples import examples
from cli.holding import holds
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
    words,
)
from cli.specs import checked
from cluster.spec import Cluster

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
    pools = _pools(loaded, words(pool))
    at_once = parallel.at_least_one(len(loaded.host_list())) if parallel else _PARALLEL
    from cli.actions import draining, upgrade

    rules = draining.rules(
        drain_timeout,
        evict_unmanaged=evict_unmanaged,
        keep_empty_dir=keep_empty_dir,
        wait_for_jobs=wait_for_jobs,
    )
    choices = upgrade.Choices(pools, control_plane_only, rules, ready_timeout, at_once)
    upgrade.upgrade(loaded, choices, dry_run=dry_run, yes=yes or as_json, as_json=as_json)


def _pools(cluster: Cluster, names: tuple[str, ...]) -> tuple[str, ...] | None:
    existing = [name for name, pool in cluster.spec.pools.items() if pool.site]
    if unknown := [name for name in names if name not in existing]:
        raise typer.BadParameter(
            f"--pool: {cluster.name} has no pool {', '.join(unknown)} at a site; it has: {', '.join(existing) or 'none'}"
        )
    return names or None
