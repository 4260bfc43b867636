"""`reboot`: its arguments."""

from __future__ import annotations

from cli.examples import examples
from cli.holding import holds
from cli.options import (
    ClusterArg,
    DrainTimeoutOpt,
    DryOpt,
    EvictUnmanagedOpt,
    JsonOpt,
    KeepEmptyDirOpt,
    LimitOpt,
    ParallelOpt,
    ReadyTimeoutOpt,
    WaitForJobsOpt,
    YesOpt,
    pattern,
)
from cli.specs import checked


@examples(
    ("reboot lab --dry-run", "show which hosts need it"),
    ("reboot lab", "all that need it; asks first"),
    ("reboot lab --limit rack_onprem_r1", "one rack"),
    ("reboot lab --parallel 4 --yes", "up to four hosts at a time"),
    ("reboot lab --wait-for-jobs", "interrupt no Job"),
)
@holds()
def reboot(
    cluster: ClusterArg,
    limit: LimitOpt = None,
    parallel: ParallelOpt = None,
    drain_timeout: DrainTimeoutOpt = 900.0,
    ready_timeout: ReadyTimeoutOpt = 1800.0,
    evict_unmanaged: EvictUnmanagedOpt = False,
    keep_empty_dir: KeepEmptyDirOpt = False,
    wait_for_jobs: WaitForJobsOpt = False,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Drain and reboot the hosts at sites that need it, one after another.

    A host needs a reboot for the kernel settings of its pool, or for packages.
    Each host: cordon, evict within disruption budgets, reboot, wait until its
    node is Ready and preflight has passed, uncordon. After a failure no other
    host starts. --parallel reboots more hosts at a time, as far as pools'
    max_unavailable allows.

    Idempotent: if interrupted, run it again. --ready-timeout defaults to 30m.
    Exit code 1 if a host failed, 4 if the only problem is unreachable hosts.
    docs/how-to/reboot.md has more.
    """
    loaded = checked(cluster)
    from cli.actions import draining, reboot

    reboot.reboot(
        loaded,
        pattern(limit),
        draining.rules(
            drain_timeout,
            evict_unmanaged=evict_unmanaged,
            keep_empty_dir=keep_empty_dir,
            wait_for_jobs=wait_for_jobs,
        ),
        ready_timeout,
        parallel,
        dry_run=dry_run,
        yes=yes or as_json,
        as_json=as_json,
    )
