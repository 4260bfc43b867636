"""`tenancy sync`, and `status CLUSTER tenancy`: their rounds. Rounds for hosts are in `cli.actions.tenancy_capacity`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import typer
from rich.text import Text

from cli import exits
from cli.actions.holding import hold
from cli.actions.rounds import without_end
from cli.actions.tenancy_capacity import capacity_of
from cli.output import errors
from cli.sections import Look, Options, Report
from cli.views import tenancy as views
from clients.lease import Lease, this_process
from cluster.spec import Cluster
from controllers.tenancy.capacity.run import CapacityReview
from controllers.tenancy.directory.choose import directory_of, settings_of
from controllers.tenancy.directory.model import NoPoliciesError
from controllers.tenancy.sync.run import LEASE, Applied, Sync, SyncReview
from operations import stack


def sync(
    cluster: Cluster,
    folder: Path,
    watch_s: float | None,
    *,
    accept_loss: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Sync with the directory once and exit, or repeatedly. folder: of the cluster's files."""
    work = _Work(cluster, folder, dry_run=dry_run, yes=yes, as_json=as_json)
    if watch_s:
        without_end(work.round, watch_s, work.lease())
    raise typer.Exit(work.round(accept_loss=accept_loss))


def section(cluster: Cluster, folder: Path, options: Options) -> Look:
    """Show namespaces of people and teams: members, which are frozen; with allocations, also each team's hosts."""
    work = _Work(cluster, folder, dry_run=True, yes=True, as_json=False)

    def look() -> Report:
        result, hosts = work.sync.look(accept_loss=True), work.hosts()
        arguments = (cluster, work.directory.name, result, hosts)
        return Report(exits.DONE, views.document(*arguments), lambda: views.listed(*arguments))

    return look


class _Work:
    """One cluster's directory, in one round or many."""

    def __init__(self, cluster: Cluster, folder: Path, *, dry_run: bool, yes: bool, as_json: bool) -> None:
        self.cluster = cluster
        self._dry_run, self._yes, self._as_json = dry_run, yes, as_json
        self._access = stack.access_to(cluster)
        self._settings = settings_of(cluster)
        self.directory = directory_of(cluster, folder, partial(stack.secret_of, cluster))
        self.sync = Sync(self._access, self.directory, self._settings)

    def lease(self) -> Lease | None:
        """Return the Lease of a service; None for a dry run."""
        return None if self._dry_run else Lease(self._access.api(), LEASE, this_process())

    def hosts(self) -> CapacityReview | None:
        """Return each team's hosts; None if the spec has no allocations."""
        if not self._settings.allocations:
            return None
        try:
            return capacity_of(self.cluster, self._access).look(accept_loss=True)
        except NoPoliciesError as error:
            errors.print(Text(str(error), style="yellow"))
            return None

    def round(self, *, accept_loss: bool = False) -> int:
        """Look, change what may change, and return an exit code."""
        view = views.View(self.cluster, self.directory.name, quiet=self._as_json)
        result = self.sync.look(accept_loss=accept_loss)
        view.show(result, accept_loss=accept_loss)
        applied = Applied()
        if not result.refused and not self._dry_run:
            if result.plan.changes and not self._yes:
                view.confirm(result)
            applied = self._apply(result, view, accept_loss=accept_loss)
        return view.conclude(result, applied, dry_run=self._dry_run)

    def _apply(self, result: SyncReview, view: views.View, *, accept_loss: bool) -> Applied:
        about = "--accept-loss" if accept_loss else ""
        if not result.plan.changes:
            return self.sync.apply(result)  # records sizes at most
        with hold(self.cluster, self._access, "tenancy sync", about, repeatable=True):
            return self.sync.apply(result, view.tell)
