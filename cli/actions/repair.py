"""`repair`: its rounds."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import typer

from cli.actions.clusters import run_up
from cli.actions.holding import hold
from cli.actions.rounds import without_end
from cli.views import repair as views
from clients.access import Access
from cluster.spec import Cluster
from operations import stack
from operations.drain import Rules
from operations.reboot import session
from operations.repair import means
from operations.repair.look import CheckInputs, RepairPlan, RepairStep, limited, limits_of, plan, see
from operations.repair.run import Repairs, keep, retry
from operations.ssh import ssh_to


def repair(
    cluster: Cluster,
    folder: Path,
    rules: Rules,
    brakes: tuple[str | None, str | None],
    limit: tuple[str, ...],
    again: tuple[str, ...],
    watch_s: float | None,
    *,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Repair once and exit, or repeatedly. again: hosts whose failed repairs are cleared first."""
    work = _Work(cluster, folder, rules, brakes, limit, dry_run=dry_run, yes=yes, as_json=as_json)
    for host in again:
        work.retry(host)
    if watch_s:
        work.watch(watch_s)
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
        self._cluster, self._folder, self._rules, self._limit = cluster, folder, rules, limit
        self._limits = limits_of(cluster).overridden(*brakes)
        self._brakes = brakes
        self._dry_run, self._yes, self._as_json = dry_run, yes, as_json
        self._cached_access: Access | None = None

    def retry(self, host: str) -> None:
        """Clear a host's repairs. Errors: raises RefusedError if it is not a node."""
        around = self._around()
        limited(see(around).fleet.members, [host])
        if not self._dry_run:
            views.forgotten(host, retry(around, host), quiet=self._as_json)

    def round(self) -> int:
        """Look for broken nodes, repair what may be repaired, and return an exit code."""
        view = views.View(self._cluster, self._brakes, quiet=self._as_json)
        plan_ = plan(self._around(), self._limit, means.with_bmc(self._cluster))
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

    def _mend(self, plan_: RepairPlan, view: views.View) -> None:
        access = self._access()
        replaced = [case for case in plan_.allowed if case.step is RepairStep.REPLACE]
        at_sites = [case for case in plan_.allowed if case not in replaced]
        # Replacing a machine runs `up`, which locks the cluster itself.
        for cases, opened, alone in ((at_sites, session, self._alone), (replaced, ssh_to, nullcontext)):
            if not cases or view.rolled.interrupted:
                continue
            with alone(), opened(self._cluster, access) as executor, view.details() as report:
                tools_ = means.tools(
                    self._cluster, self._folder, access, executor, self._rules, lambda: run_up(self._cluster)
                )
                repairs = Repairs(self._around(), tools_, view.tell)
                view.add(repairs.run(plan_, cases, report), repairs.results)

    def _alone(self) -> AbstractContextManager[object]:
        about = " ".join(f"--limit {host}" for host in self._limit)
        return hold(self._cluster, self._access(), "repair", about, repeatable=True)

    def _access(self) -> Access:
        if self._cached_access is None:
            self._cached_access = stack.access_to(self._cluster)
        return self._cached_access

    def _around(self) -> CheckInputs:
        access = self._access()
        return CheckInputs(self._cluster, access.api, lambda: means.control_plane(self._cluster, access), self._limits)
