"""`tenancy capacity`: what it takes, and its rounds. What it prints is in `cli.tenancy_capacity_view`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import ClusterArg, JsonOpt, examples
from cli.output import note
from cli.rounds import without_end
from cli.specs import checked

if TYPE_CHECKING:
    from clients.access import Access
    from clients.lease import Lease
    from cluster.spec import Cluster
    from controllers.tenancy.capacity.run import Applied, Capacity, Found

EPILOG = examples(
    ("tenancy capacity jaguar --dry-run", "which hosts change hands, why, and what moves wait for"),
    ("tenancy capacity jaguar", "make the moves; asks"),
    ("tenancy capacity jaguar --evict", "end what moves wait for, too"),
    ("tenancy capacity jaguar --watch 30 --yes", "as a service: hosts that join get their team"),
)


def capacity(
    cluster: ClusterArg,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Look, say what would change, change nothing.")] = False,
    evict: Annotated[
        bool, typer.Option("--evict", help="Evict the pods that moves wait for, as their budgets allow.")
    ] = False,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Take hosts from teams although tenancy.refuse_loss or more would go.")
    ] = False,
    watch: Annotated[
        int | None, typer.Option("--watch", metavar="SECONDS", min=1, help="Again and again, with so long between.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask; for scripts, and needed with --watch. --json does not ask.")
    ] = False,
    as_json: JsonOpt = False,
) -> None:
    """Bring hosts in step with tenancy.allocations: whose they are, and whose pods may go there.

    A team's host has the label and taint openai.com/team. The API server gives pods
    the toleration of their namespace's team, and refuses that of another. Idle hosts
    change hands first; a busy one is closed to others and changes hands when what
    runs there has ended. Nothing is evicted without --evict. The directory is not
    asked: tenancy sync goes before. Safe to interrupt: run it again.
    --watch is a service on this machine; controllers apply runs one in the cluster.
    Exit 1 when it was refused, or somebody has to decide about an allocation; with
    --watch, 3 when another watches.
    """
    if watch and not (yes or as_json or dry_run):
        raise typer.BadParameter("--watch asks nobody: add --yes")
    if watch and accept_loss:
        raise typer.BadParameter("--accept-loss is for one run: without --watch")
    work = _Work(cluster, dry_run=dry_run, evict=evict, yes=yes or as_json, as_json=as_json)
    if watch:
        without_end(work.round, watch, work.lease())
    raise typer.Exit(work.round(accept_loss=accept_loss))


def capacity_of(cluster: Cluster, access: Access) -> Capacity:
    from controllers.tenancy.capacity.run import Capacity
    from controllers.tenancy.directory.choose import settings_of

    return Capacity(access, cluster, settings_of(cluster))


class _Work:
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
        from cli import tenancy_capacity_view
        from controllers.tenancy.capacity.run import Applied
        from operations import stack

        cluster = checked(self._name)
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

    def _apply(self, cluster: Cluster, access: Access, own: Capacity, found: Found, view: object) -> Applied:
        from cli.tenancy_capacity_view import View
        from operations.record import one_operation

        assert isinstance(view, View)
        about = "--evict" if self._evict else ""
        with one_operation(cluster, access, "tenancy capacity", about, repeatable=True, report=note):
            return own.apply(found, view.tell, evict=self._evict)
