"""`repair`: its arguments and rounds. `cli.repair_view` prints."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.holding import hold, holds
from cli.options import (
    ClusterArg,
    DrainTimeoutOpt,
    DryOpt,
    JsonOpt,
    LimitOpt,
    WatchOpt,
    YesOpt,
    drain_rules,
    examples,
    words,
)
from cli.rounds import without_end
from cli.specs import checked
from cluster.project import ROOT

if TYPE_CHECKING:
    from cli.repair_view import View
    from clients.access import Access
    from cluster.spec import Cluster
    from operations.breaker import Limits
    from operations.drain import Rules
    from operations.repair.look import CheckInputs, RepairPlan


@examples(
    ("repair jaguar --dry-run", "show what is broken"),
    ("repair jaguar", "ask, then repair"),
    ("repair jaguar --limit r07", "one rack"),
    ("repair jaguar --retry gpu-017", "after its hardware was fixed"),
    ("repair jaguar --max-removal 60%", "override a brake"),
    ("repair jaguar --watch 60 --yes", "as a service"),
)
@holds()
def repair(
    cluster: ClusterArg,
    limit: LimitOpt = None,
    retry: Annotated[
        list[str] | None,
        typer.Option("--retry", metavar="HOST", help="First clear this host's failed repairs and its ticket."),
    ] = None,
    watch: WatchOpt = None,
    max_unhealthy: Annotated[
        str | None,
        typer.Option("--max-unhealthy", metavar="N|P%", help="Override the pools' limits in the spec for this run."),
    ] = None,
    max_removal: Annotated[
        str | None,
        typer.Option("--max-removal", metavar="N|P%", help="Override repair.max_removed for this run."),
    ] = None,
    drain_timeout: DrainTimeoutOpt = 900.0,
    dry_run: DryOpt = False,
    yes: YesOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Repair broken nodes: drain, reboot or power-cycle, check, return to service.

    repair.conditions in the spec defines what counts as broken, and after how
    long. Workers in the region are replaced. A host that repairs do not fix stays
    out of service, with a ticket that says what to do. While many nodes or the
    control plane are unhealthy, no repair starts.

    Idempotent: if interrupted, run it again. --watch needs --yes. Exit code 1 if
    something is left to repair. docs/how-to/repair.md has more.
    """
    if watch and not (yes or as_json or dry_run):
        raise typer.BadParameter("--watch cannot ask: add --yes")
    loaded = checked(cluster)
    rules = drain_rules(drain_timeout)
    brakes = (_share(max_unhealthy, "--max-unhealthy"), _share(max_removal, "--max-removal"))
    work = _Work(
        loaded, _folder(cluster), rules, brakes, words(limit), dry_run=dry_run, yes=yes or as_json, as_json=as_json
    )
    for host in words(retry):
        work.retry(host)
    if watch:
        work.watch(watch)
    raise typer.Exit(work.round())


class _Work:
    """One cluster's repairs, in one round or many."""

    def __init__(
        self,
        cluster: Cluster,
        folder: Path,
        rules: Rules,
        brakes: tuple[str | None, str | None],
        limit: tuple[str, ...],
        *,
        dry_run: bool,
        yes: bool,
        as_json: bool,
    ) -> None:
        from operations.repair.look import limits_of

        self._cluster, self._folder, self._rules, self._limit = cluster, folder, rules, limit
        self._limits: Limits = limits_of(cluster).overridden(*brakes)
        self._brakes = brakes
        self._dry_run, self._yes, self._as_json = dry_run, yes, as_json
        self._cached_access: Access | None = None

    def retry(self, host: str) -> None:
        """Clear a host's repairs. Errors: raises RefusedError if it is not a node."""
        from cli import repair_view
        from operations.repair.look import limited, see
        from operations.repair.run import retry

        around = self._around()
        limited(see(around).fleet.members, [host])
        if not self._dry_run:
            repair_view.forgotten(host, retry(around, host), quiet=self._as_json)

    def round(self) -> int:
        """Look for broken nodes, repair what may be repaired, and return an exit code."""
        from cli import repair_view
        from operations.repair.look import plan
        from operations.repair.means import with_bmc
        from operations.repair.run import keep

        view = repair_view.View(self._cluster, self._brakes, quiet=self._as_json)
        plan_ = plan(self._around(), self._limit, with_bmc(self._cluster))
        view.show(plan_)
        if not self._dry_run:
            keep(self._around(), plan_)
        if plan_.allowed and not self._dry_run:
            if not self._yes:
                view.confirm(plan_)
            self._mend(plan_, view)
        return view.conclude(plan_, dry_run=self._dry_run)

    def watch(self, every_s: float) -> None:
        """Run rounds without end. A round that another run or the API prevents is retried."""
        without_end(self.round, every_s)

    def _mend(self, plan_: RepairPlan, view: View) -> None:
        from cli.look import run_up
        from operations.reboot import session
        from operations.repair.look import RepairStep
        from operations.repair.means import tools
        from operations.repair.run import Repairs
        from operations.ssh import ssh_to

        access = self._access()
        replaced = [case for case in plan_.allowed if case.step is RepairStep.REPLACE]
        at_sites = [case for case in plan_.allowed if case not in replaced]
        # Replacing a machine runs `up`, which locks the cluster itself.
        for cases, opened, alone in ((at_sites, session, self._alone), (replaced, ssh_to, nullcontext)):
            if not cases or view.rolled.interrupted:
                continue
            with alone(), opened(self._cluster, access) as executor, view.details() as report:
                tools_ = tools(
                    self._cluster, self._folder, access, executor, self._rules, lambda: run_up(self._cluster)
                )
                repairs = Repairs(self._around(), tools_, view.tell)
                view.add(repairs.run(plan_, cases, report), repairs.results)

    def _alone(self) -> AbstractContextManager[object]:
        about = " ".join(f"--limit {host}" for host in self._limit)
        return hold(self._cluster, self._access(), "repair", about, repeatable=True)

    def _access(self) -> Access:
        from operations import stack

        if self._cached_access is None:
            self._cached_access = stack.access_to(self._cluster)
        return self._cached_access

    def _around(self) -> CheckInputs:
        from operations.repair.look import CheckInputs
        from operations.repair.means import control_plane

        access = self._access()
        return CheckInputs(self._cluster, access.api, lambda: control_plane(self._cluster, access), self._limits)


def _folder(name: str) -> Path:
    from cluster.load import find_cluster

    return find_cluster(name, ROOT).parent


def _share(text: str | None, option: str) -> str | None:
    from pydantic_core import PydanticCustomError

    from cluster.quantities import parse_share

    try:
        return None if text is None else str(parse_share(text))
    except PydanticCustomError as error:
        raise typer.BadParameter(f"{option}: {error.message()}; write 3 or 60%") from None
