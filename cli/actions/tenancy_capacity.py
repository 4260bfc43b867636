"""`tenancy sync --hosts`: its rounds."""

from __future__ import annotations

import typer

from cli.actions.holding import hold
from cli.actions.rounds import without_end
from cli.specs import checked
from cli.views import tenancy_capacity as views
from clients.access import Access
from clients.lease import Lease, this_process
from cluster.spec import Cluster
from controllers.tenancy.capacity.run import LEASE, Applied, Capacity, CapacityReview
from controllers.tenancy.directory.choose import settings_of
from operations import stack


def capacity_of(cluster: Cluster, access: Access) -> Capacity:
    return Capacity(access, cluster, settings_of(cluster))


def sync(
    cluster: Cluster,
    name: str,
    watch_s: float | None,
    *,
    accept_loss: bool,
    evict: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Assign hosts to teams once and exit, or repeatedly; each round then reads the spec, so it notices changes.

    name: the cluster, as on the command line.
    """
    work = _Work(dry_run=dry_run, evict=evict, yes=yes, as_json=as_json)
    if watch_s:
        lease = None if dry_run else Lease(stack.access_to(cluster).api(), LEASE, this_process())
        without_end(lambda: work.round(checked(name)), watch_s, lease)
    raise typer.Exit(work.round(cluster, accept_loss=accept_loss))


class _Work:
    """One cluster's allocations."""

    def __init__(self, *, dry_run: bool, evict: bool, yes: bool, as_json: bool) -> None:
        self._dry_run, self._evict, self._yes, self._as_json = dry_run, evict, yes, as_json

    def round(self, cluster: Cluster, *, accept_loss: bool = False) -> int:
        """Look, change what may change, and return an exit code."""
        access = stack.access_to(cluster)
        work = capacity_of(cluster, access)
        view = views.View(cluster, quiet=self._as_json)
        result = work.look(accept_loss=accept_loss)
        view.show(result, evict=self._evict)
        applied = Applied()
        todo = result.changes or (self._evict and result.plan.waiting)
        if todo and not result.refused and not self._dry_run:
            if not self._yes:
                view.confirm(result, evict=self._evict)
            applied = self._apply(cluster, access, work, result, view)
        return view.conclude(result, applied, dry_run=self._dry_run)

    def _apply(
        self, cluster: Cluster, access: Access, work: Capacity, result: CapacityReview, view: views.View
    ) -> Applied:
        about = "--hosts --evict" if self._evict else "--hosts"
        with hold(cluster, access, "tenancy sync", about, repeatable=True):
            return work.apply(result, view.tell, evict=self._evict)
