"""`tenancy sync --hosts`: its rounds. `cli.tenancy_capacity_view` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.holding import hold
from cli.specs import checked

if TYPE_CHECKING:
    from cli.tenancy_capacity_view import View
    from clients.access import Access
    from clients.lease import Lease
    from cluster.spec import Cluster
    from controllers.tenancy.capacity.run import Applied, Capacity, CapacityReview


def capacity_of(cluster: Cluster, access: Access) -> Capacity:
    from controllers.tenancy.capacity.run import Capacity
    from controllers.tenancy.directory.choose import settings_of

    return Capacity(access, cluster, settings_of(cluster))


class Hosts:
    """One cluster's allocations. Each round reads the spec, so a service sees its changes."""

    def __init__(self, name: str, *, dry_run: bool, evict: bool, yes: bool, as_json: bool) -> None:
        self._name, self._dry_run, self._evict, self._yes, self._as_json = name, dry_run, evict, yes, as_json

    def lease(self) -> Lease | None:
        """Return the Lease of a service; None for a dry run."""
        from clients.lease import Lease, this_process
        from controllers.tenancy.capacity.run import LEASE
        from operations import stack

        if self._dry_run:
            return None
        return Lease(stack.access_to(checked(self._name)).api(), LEASE, this_process())

    def round(self, *, accept_loss: bool = False) -> int:
        """Look, change what may change, and return an exit code."""
        cluster = checked(self._name)
        from cli import tenancy_capacity_view
        from controllers.tenancy.capacity.run import Applied
        from operations import stack

        access = stack.access_to(cluster)
        work = capacity_of(cluster, access)
        view = tenancy_capacity_view.View(cluster, quiet=self._as_json)
        result = work.look(accept_loss=accept_loss)
        view.show(result, evict=self._evict)
        applied = Applied()
        todo = result.changes or (self._evict and result.plan.waiting)
        if todo and not result.refused and not self._dry_run:
            if not self._yes:
                view.confirm(result, evict=self._evict)
            applied = self._apply(cluster, access, work, result, view)
        return view.conclude(result, applied, dry_run=self._dry_run)

    def _apply(self, cluster: Cluster, access: Access, work: Capacity, result: CapacityReview, view: View) -> Applied:
        about = "--hosts --evict" if self._evict else "--hosts"
        with hold(cluster, access, "tenancy sync", about, repeatable=True):
            return work.apply(result, view.tell, evict=self._evict)
