"""`tenancy sync --hosts`: its rounds. What it prints is in `cli.tenancy_capacity_view`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.holding import hold
from cli.specs import checked

if TYPE_CHECKING:
    from cli.tenancy_capacity_view import View
    from clients.access import Access
    from clients.lease import Lease
    from cluster.spec import Cluster
    from controllers.tenancy.capacity.run import Applied, Capacity, Found


def capacity_of(cluster: Cluster, access: Access) -> Capacity:
    from controllers.tenancy.capacity.run import Capacity
    from controllers.tenancy.directory.choose import settings_of

    return Capacity(access, cluster, settings_of(cluster))


class Hosts:
    """One cluster's allocations. The spec is read for each round: a service sees what was changed."""

    def __init__(self, name: str, *, dry_run: bool, evict: bool, yes: bool, as_json: bool) -> None:
        self._name, self._dry_run, self._evict, self._yes, self._as_json = name, dry_run, evict, yes, as_json

    def lease(self) -> Lease | None:
        """Of whoever does this again and again; None of a dry run."""
        from clients.lease import Lease, this_process
        from controllers.tenancy.capacity.run import LEASE
        from operations import stack

        if self._dry_run:
            return None
        return Lease(stack.access_to(checked(self._name)).api(), LEASE, this_process())

    def round(self, *, accept_loss: bool = False) -> int:
        """Look, and change what may be changed; an exit code."""
        cluster = checked(self._name)
        from cli import tenancy_capacity_view
        from controllers.tenancy.capacity.run import Applied
        from operations import stack

        access = stack.access_to(cluster)
        own = capacity_of(cluster, access)
        view = tenancy_capacity_view.View(cluster, quiet=self._as_json)
        found = own.look(accept_loss=accept_loss)
        view.show(found, evict=self._evict)
        applied = Applied()
        todo = found.changes or (self._evict and found.plan.waiting)
        if todo and not found.refused and not self._dry_run:
            if not self._yes:
                view.confirm(found, evict=self._evict)
            applied = self._apply(cluster, access, own, found, view)
        return view.conclude(found, applied, dry_run=self._dry_run)

    def _apply(self, cluster: Cluster, access: Access, own: Capacity, found: Found, view: View) -> Applied:
        about = "--hosts --evict" if self._evict else "--hosts"
        with hold(cluster, access, "tenancy sync", about, repeatable=True):
            return own.apply(found, view.tell, evict=self._evict)
